/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_REFLECT_H
#define HEDDLE_LA_REFLECT_H

/* Block reflectors on cores: H = I - V T V^H, V unit lower trapezoidal by columns
 * (LAPACK's "forward, columnwise"). */
#include "la/la.h"

/* C = H C, H^H C (side 'L'), C H or C H^H ('R'); trans is 'N' or 'C'. What lies
 * above the diagonal of v is not looked at. HEDDLE_ENOMEM. */
heddle_status heddle_la_reflect(enum heddle_la_type t, char side, char trans,
                                struct la_block v, struct la_block tri,
                                struct la_block c);

#endif /* HEDDLE_LA_REFLECT_H */
