/* A read whose width is sharded over MPI ranks.
 *
 * Every rank holds some columns of all rows. It scores those, the two sums per row and token are
 * added up over the ranks (9 sources, 4 tokens: 576 bytes), and it mixes its columns with the
 * logits that follow. Nothing else crosses ranks. Rank 0 also reads the whole width in one piece
 * and compares.
 *
 * How far the two may differ: either logit is off from the exact one by the roundings of a sum,
 * k = ceil(width / 32) + 7 in the library's order, and one more per rank for the sharded one, each
 * at most u = 2^-24 of sum |x_i q_i| / rms, or of the logit for the mean square. So with
 *
 *     delta = max over sources of (2 k + ranks) * u * (sum |x_i q_i| / rms + |logit|)
 *
 * logits differ by at most delta, weights by a factor of at most exp(2 delta), and each mix has
 * roundings of its own: (3 S + 3) * u for S sources. Elements differ by at most
 *
 *     (exp(2 delta) - 1 + 2 (3 S + 3) * u) * exp(2 delta) * max over sources of |x_i|
 *
 * (a worst case: what is found is far below it, as roundings cancel). Prints one line; exit status
 * 1 if anything failed or is further off than that. */
#include <attnres.h>
#include <mpi.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 7168, SOURCES = 9, TOKENS = 4, SUMS = SOURCES * TOKENS };
static const double eps = 1e-5, unit = 0x1p-24;

/* ---- Some input, the same on every rank ---------------------------------------------------- */

static double noise(unsigned long long x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return (double)(x >> 40) * 0x1p-23 - 1; /* -1 .. 1 */
}

static float element(int source, int token, int column)
{
    return (float)(noise((unsigned long long)(source * TOKENS + token) * WIDTH +
                         (unsigned long long)column) *
                   (source + 1));
}

static float query_element(int column)
{
    return (float)(noise(1ull << 40 | (unsigned)column) * 0.02);
}

/* ---- Columns ------------------------------------------------------------------------------- */

/* Columns first .. first + width - 1 of everything. */
typedef struct columns {
    int first, width;
    float *rows, *query, *retrieved; /* [SOURCES][TOKENS][width], [width], [TOKENS][width] */
    attnres_rows sources[SOURCES];
    attnres_shape shape;
} columns;

static void *allocate(size_t count)
{
    void *memory = calloc(count, sizeof(float));
    if (!memory) {
        fprintf(stderr, "sharded_width: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static columns make_columns(int first, int width)
{
    const size_t size = (size_t)width;
    columns it = {.first = first, .width = width, .shape = {ATTNRES_F32, TOKENS, size}};
    it.rows = allocate(SOURCES * TOKENS * size);
    it.query = allocate(size);
    it.retrieved = allocate(TOKENS * size);
    for (int s = 0; s < SOURCES; s++) {
        it.sources[s] = (attnres_rows){it.rows + (size_t)(s * TOKENS) * size, 0};
        for (int t = 0; t < TOKENS; t++) {
            for (int i = 0; i < width; i++) {
                it.rows[(size_t)(s * TOKENS + t) * size + (size_t)i] = element(s, t, first + i);
            }
        }
    }
    for (int i = 0; i < width; i++) {
        it.query[i] = query_element(first + i);
    }
    return it;
}

static void free_columns(columns *it)
{
    free(it->rows);
    free(it->query);
    free(it->retrieved);
}

/* ---- The read ------------------------------------------------------------------------------ */

/* sums: the rank's own, then everybody's, then SUMS logits. */
static attnres_status read_sharded(columns *mine)
{
    double sums[2 * SUMS];
    const attnres_score_args score = {.sources = mine->sources,
                                      .source_count = SOURCES,
                                      .query = mine->query,
                                      .squares = {.data = sums},
                                      .dots = {.data = sums + SUMS}};
    const attnres_status status = attnres_score(&mine->shape, &score);
    if (status != ATTNRES_OK) {
        return status;
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2 * SUMS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < SUMS; i++) { /* the width is that of the whole row */
        sums[i] = attnres_combine(sums[i], sums[SUMS + i], WIDTH, eps);
    }
    const attnres_mix_args mix = {.sources = mine->sources,
                                  .source_count = SOURCES,
                                  .logits = {.data = sums},
                                  .retrieved = {mine->retrieved, 0}};
    return attnres_mix(&mine->shape, &mix);
}

static attnres_status read_whole(columns *all)
{
    const attnres_read_args args = {.sources = all->sources,
                                    .source_count = SOURCES,
                                    .query = all->query,
                                    .eps = eps,
                                    .retrieved = {all->retrieved, 0}};
    return attnres_read(&all->shape, &args);
}

/* ---- The comparison ------------------------------------------------------------------------ */

static double logit_bound(const columns *all, int source, int token, int ranks)
{
    const float *row = all->rows + (source * TOKENS + token) * WIDTH;
    const double chain = (WIDTH + 31) / 32 + 7;
    double squares = 0, dot = 0, magnitude = 0;
    for (int i = 0; i < WIDTH; i++) {
        const double x = (double)row[i], product = x * (double)all->query[i];
        squares += x * x;
        dot += product;
        magnitude += fabs(product);
    }
    return (2 * chain + ranks) * unit * (magnitude + fabs(dot)) / sqrt(squares / WIDTH + eps);
}

/* The worst difference of a token, as a multiple of its bound. */
static double compare_token(const columns *all, const float *sharded, int token, int ranks)
{
    const float *whole = all->retrieved + token * WIDTH;
    double delta = 0, worst = 0;
    for (int s = 0; s < SOURCES; s++) {
        delta = fmax(delta, logit_bound(all, s, token, ranks));
    }
    const double factor = (expm1(2 * delta) + 2 * (3 * SOURCES + 3) * unit) * exp(2 * delta);
    for (int i = 0; i < WIDTH; i++) {
        double largest = 0;
        for (int s = 0; s < SOURCES; s++) {
            largest = fmax(largest, fabs((double)all->rows[(s * TOKENS + token) * WIDTH + i]));
        }
        const double difference = fabs((double)sharded[i] - (double)whole[i]);
        if (!(difference <= factor * largest)) { /* also if it is NaN */
            return INFINITY;
        }
        worst = fmax(worst, difference == 0 ? 0 : difference / (factor * largest));
    }
    return worst;
}

/* Rank 0 collects the columns of everybody, token by token, and compares. 1 if they agree. */
static int compare(const columns *mine, int rank, int ranks, const int *counts, const int *firsts)
{
    columns all = {0};
    float *sharded = NULL;
    double worst = 0;
    if (rank == 0) {
        all = make_columns(0, WIDTH);
        sharded = allocate(WIDTH);
        worst = read_whole(&all) == ATTNRES_OK ? 0 : (double)INFINITY;
    }
    for (int t = 0; t < TOKENS; t++) {
        MPI_Gatherv(mine->retrieved + t * mine->width, mine->width, MPI_FLOAT, sharded, counts,
                    firsts, MPI_FLOAT, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            worst = fmax(worst, compare_token(&all, sharded, t, ranks));
        }
    }
    if (rank == 0) {
        printf("%d ranks, width %d, %d sources, %d tokens: worst difference %.1e of its bound%s\n",
               ranks, WIDTH, SOURCES, TOKENS, worst, worst <= 1 ? "" : ": DISAGREES");
        free_columns(&all);
        free(sharded);
    }
    return worst <= 1;
}

int main(int argc, char **argv)
{
    int rank, ranks, agrees;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > WIDTH) {
        fprintf(stderr, "sharded_width: more ranks than columns\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int *counts = allocate((size_t)ranks), *firsts = allocate((size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        firsts[r] = (int)((long long)WIDTH * r / ranks);
        counts[r] = (int)((long long)WIDTH * (r + 1) / ranks) - firsts[r];
    }
    columns mine = make_columns(firsts[rank], counts[rank]);
    const attnres_status status = read_sharded(&mine);
    if (status != ATTNRES_OK) { /* the others wait for this rank's sums */
        fprintf(stderr, "sharded_width: rank %d: %s\n", rank, attnres_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    agrees = compare(&mine, rank, ranks, counts, firsts);
    MPI_Bcast(&agrees, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free_columns(&mine);
    free(counts);
    free(firsts);
    MPI_Finalize();
    return agrees ? 0 : 1;
}
