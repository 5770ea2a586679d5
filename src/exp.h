/* exp for x <= 0, and nothing else. */
#ifndef ATTNRES_EXP_H
#define ATTNRES_EXP_H

/* At most 1 ulp from e^x for x <= 0. exp(0) = 1 exactly; 0 where e^x is below the smallest normal
 * double, -Inf included; NaN for NaN. Only double additions, multiplications and one division, in
 * a written order: the same bits everywhere. */
double attnres_exp(double x);

#endif
