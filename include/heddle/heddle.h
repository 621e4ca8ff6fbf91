/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_HEDDLE_H
#define HEDDLE_HEDDLE_H

/* heddle/heddle.h - everything a program that runs tasks needs. */
#include "heddle/bound.h"
#include "heddle/ctx.h"
#include "heddle/data.h"
#include "heddle/device.h"
#include "heddle/graph.h"
#include "heddle/la.h"
#include "heddle/loop.h"
#include "heddle/status.h"
#include "heddle/task.h"
#include "heddle/version.h"

#endif /* HEDDLE_HEDDLE_H */
