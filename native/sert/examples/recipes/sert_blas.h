/* Multiplies matrices in tiles, so that a request can be stopped between two of them.
 *
 *     openblas_set_num_threads(1);                            // once, before requests
 *     sert_dgemm(m, n, k, 1.0, a, k, b, n, 0.0, c, n);        // in a request
 *
 * BLAS has no callback and no error return. A stop between two tiles needs none: BLAS is not
 * running, and C has some of its tiles. OpenBLAS keeps its work buffers, so they are not the
 * request's. Write other loops over blocks in the same way. */
#ifndef SERT_BLAS_H
#define SERT_BLAS_H

#include <cblas.h>

#include "sert_calls.h"

/* The side of a tile. A tile of 512 takes some milliseconds, and makes the product somewhat slower. A
 * larger tile makes it less slow, and a stop later. */
#define SERT_BLAS_TILE 512

/* C = alpha A B + beta C; k is above 0. Matrices are stored by rows, as with CblasRowMajor, and not transposed. */
static inline void sert_dgemm(int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb,
                              double beta, double *c, int ldc) {
    for (int i = 0; i < m; i += SERT_BLAS_TILE) {
        for (int j = 0; j < n; j += SERT_BLAS_TILE) {
            for (int l = 0; l < k; l += SERT_BLAS_TILE) {
                int rows = m - i < SERT_BLAS_TILE ? m - i : SERT_BLAS_TILE;
                int columns = n - j < SERT_BLAS_TILE ? n - j : SERT_BLAS_TILE;
                int inner = k - l < SERT_BLAS_TILE ? k - l : SERT_BLAS_TILE;
                SERT_unaccounted_begin();
                cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, alpha, a + (long)i * lda + l, lda,
                            b + (long)l * ldb + j, ldb, l == 0 ? beta : 1.0, c + (long)i * ldc + j, ldc);
                SERT_unaccounted_end();
            }
        }
    }
}

#endif
