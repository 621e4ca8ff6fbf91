/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_COND_H
#define HEDDLE_BASE_COND_H

/*
 * HEDDLE_IF(0 or 1, tokens): keeps or drops tokens, so that a line of a .def
 * file can carry its own build switch and no source file needs an #ifdef.
 */
#define HEDDLE_IF_0(...)
#define HEDDLE_IF_1(...)   __VA_ARGS__
#define HEDDLE_CAT_(a, b)  a##b
#define HEDDLE_CAT(a, b)   HEDDLE_CAT_(a, b)
#define HEDDLE_IF(on, ...) HEDDLE_CAT(HEDDLE_IF_, on)(__VA_ARGS__)

#endif /* HEDDLE_BASE_COND_H */
