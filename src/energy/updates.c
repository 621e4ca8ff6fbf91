/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a slow counter was updated.
 *
 * An update lies between the last reading of the old value and the first of the
 * new one. If updates are regular, a straight line through the middles, by least
 * squares, says when each of them was: with n updates about sqrt(n) times closer
 * than the readings do. Lines that leave the readings are not believed.
 *
 * Readings at a fixed distance from the updates do not say how far that is: then
 * the line is as late as the readings allow, so that what is still to be found is a
 * lag that is not negative.
 */
#include <math.h>

#include "energy/series.h"

enum { FEW = 8 };

#define FIT   0.9 /* of the updates must agree with the line */
#define SLACK 0.1 /* of the time between two readings */

static double middle(const struct heddle_energy_step *s)
{
    return ((double)s->seen + (double)s->to) / 2;
}

static bool follows(const struct heddle_energy_series *s, size_t i)
{
    return i > 0 && s->step[i].from == s->step[i - 1].to;
}

/* Mean length of the steps that follow another; 0: there are few. */
static double mean_step(const struct heddle_energy_series *s)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 1; i < s->nsteps; i++)
        if (follows(s, i)) {
            sum += (double)(s->step[i].to - s->step[i].from);
            n++;
        }
    return n < FEW ? 0 : sum / (double)n;
}

/* Periods in that time, at least one. */
static double periods(double ns, double period)
{
    const double n = round(ns / period);

    return n > 1 ? n : 1;
}

/* Updates between that of step i - 1 and that of step i. */
static double count_between(const struct heddle_energy_series *s, size_t i, double mean)
{
    return periods(middle(&s->step[i]) - middle(&s->step[i - 1]), mean);
}

struct line {
    double start, period;
};

static bool fit_line(const struct heddle_energy_series *s, double mean, struct line *out)
{
    const double origin = middle(&s->step[0]), n = (double)s->nsteps;
    double sx = 0, sy = 0, sxx = 0, sxy = 0, x = 0;

    for (size_t i = 0; i < s->nsteps; i++) {
        const double y = middle(&s->step[i]) - origin;

        x += i > 0 ? count_between(s, i, mean) : 0;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    out->period = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    out->start = origin + (sy - out->period * sx) / n;
    return isfinite(out->start) && out->period > 0;
}

/* Is the line between the readings? If so it becomes as late as they allow. */
static bool place_line(const struct heddle_energy_series *s, double mean, struct line *l)
{
    double x = 0, latest = INFINITY;
    size_t n = 0;

    for (size_t i = 0; i < s->nsteps; i++) {
        const struct heddle_energy_step *t = &s->step[i];
        const double room = (0.5 + SLACK) * (double)(t->to - t->seen);
        double at;

        x += i > 0 ? count_between(s, i, mean) : 0;
        at = l->start + x * l->period;
        n += fabs(at - middle(t)) <= room;
        if ((double)t->to - at < latest)
            latest = (double)t->to - at;
    }
    if ((double)n < FIT * (double)s->nsteps)
        return false;
    l->start += latest > 0 ? latest : 0;
    return true;
}

void heddle_energy_find_updates(struct heddle_energy_series *s)
{
    const double mean = mean_step(s);
    struct line l;
    double x = 0, middle_before = 0; /* as it was read */
    int64_t to_before = 0;

    if (!(mean > 0) || !fit_line(s, mean, &l) || !place_line(s, mean, &l))
        return;
    for (size_t i = 0; i < s->nsteps; i++) {
        struct heddle_energy_step *t = &s->step[i];
        const double lo = (double)t->seen, hi = (double)t->to;
        double at;

        x += i > 0 ? periods(middle(t) - middle_before, mean) : 0;
        at = l.start + x * l.period;
        at = at < lo ? lo : at > hi ? hi : at;
        if (i == 0 || t->from != to_before)
            /* the update that the first reading there has seen */
            t->from = (int64_t)(at - l.period * periods(middle(t) - (double)t->from, l.period));
        else
            t->from = s->step[i - 1].to;
        middle_before = middle(t);
        to_before = t->to;
        t->to = (int64_t)at > t->from ? (int64_t)at : t->from + 1;
    }
}
