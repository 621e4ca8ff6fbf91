/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roofline: a time before the first measurement.
 *
 * Formula    max(flops / peak flops, bytes / peak bandwidth) + overhead, the
 *            roofline of Williams, Waterman and Patterson (2009). It is the
 *            best case, so the default peaks are those of one slow core: a
 *            first guess may be too long, which costs one late start, but
 *            should not be far too short.
 */
#include <math.h>

#include "perf/history.h"
#include "perf/perf.h"

const struct heddle_perf_device heddle_perf_device_default = {
    .peak_flops = 4e9,
    .peak_bytes_per_s = 8e9,
    .overhead_ns = 100.0,
};

static double usable(double v)
{
    return isfinite(v) && v > 0.0 ? v : 0.0;
}

static double either(double v, double otherwise)
{
    return usable(v) > 0.0 ? v : otherwise;
}

double heddle_perf_roofline(const struct heddle_perf_device *dev, double flops, double bytes)
{
    const struct heddle_perf_device *d = &heddle_perf_device_default;
    double compute, memory;

    if (dev == NULL)
        dev = d;
    flops = usable(flops);
    bytes = usable(bytes);
    if (flops + bytes <= 0.0)
        return 0.0;
    compute = flops * 1e9 / either(dev->peak_flops, d->peak_flops);
    memory = bytes * 1e9 / either(dev->peak_bytes_per_s, d->peak_bytes_per_s);
    return fmin(fmax(compute, memory) + either(dev->overhead_ns, d->overhead_ns),
                HEDDLE_HISTORY_MAX_NS);
}
