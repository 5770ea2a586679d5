/* attnres: Block Attention Residuals on CPUs.
 *
 * A layer of a transformer with Block Attention Residuals does not take the running sum of all
 * earlier layers as its input. It *reads* it from a few sources: the embedding, the sum of each
 * completed block of m consecutive layer outputs, and the sum of the unfinished block. For one
 * token with sources x_0 .. x_{S-1} of width d and a learned pseudo-query q, the read is
 *
 *     logit_s = scale * <q, x_s> / sqrt(mean(x_s^2) + eps) + bias_s
 *     w       = softmax(logit)                              over the S sources
 *     result  = sum_s w_s * x_s                             of the raw, not the normalised, rows
 *
 * (Kimi Team, "Attention Residuals", arXiv 2603.15031, equations 2-6.)
 *
 * One answer everywhere. For the same input every level (scalar, avx2, avx512, neon), compiler,
 * split over threads, batch size, memory layout and alignment gives the same bits, as long as
 * the floating-point environment is the default one (round to nearest, no flush-to-zero). The
 * order of every operation is written down in docs/design.md.
 *
 * Rules for every call
 * - Sizes and strides count elements, never bytes. Nothing needs more than element alignment.
 * - Structs are filled with designated initialisers; a field left zero means "absent" or the
 *   default named beside it. A new field changes the soname, so there is no size member.
 * - Arguments are checked before anything is written: a call that does not return ATTNRES_OK has
 *   left every output as it was. tokens == 0 is legal, does nothing, and then no row is looked at.
 * - A call allocates nothing, takes no lock, starts no thread and makes no system call. (The very
 *   first call of the process also looks at the CPU and at the environment variable
 *   ATTNRES_LEVEL, once.) Calls from any number of threads may run at once as long as their
 *   outputs do not overlap with each other's inputs and outputs. Tokens are independent: split
 *   the token range over your own threads as you like.
 * - NaN and Inf are data, not errors. A row that holds one makes that token's result and weights
 *   NaN, and no other token's. (A row that is the only source, too.) A NaN's sign and payload are
 *   not part of the promise.
 * - Outputs must not overlap inputs or each other, except where a field says that it may be the
 *   same rows: the same data pointer and the same stride. Anything else that overlaps is refused
 *   with ATTNRES_ERROR_OVERLAP.
 *
 * This header is C99 and C++ clean.
 */
#ifndef ATTNRES_H
#define ATTNRES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) || defined(__CYGWIN__)
#define ATTNRES_API
#elif defined(__GNUC__)
#define ATTNRES_API __attribute__((visibility("default")))
#else
#define ATTNRES_API
#endif

#define ATTNRES_VERSION_MAJOR 0
#define ATTNRES_VERSION_MINOR 1
#define ATTNRES_VERSION_PATCH 0

/* ---- Status ---------------------------------------------------------------------------- */

typedef enum attnres_status {
    ATTNRES_OK = 0,
    ATTNRES_ERROR_ARGUMENT, /* a required pointer is NULL, or the options contradict each other */
    ATTNRES_ERROR_DTYPE,    /* not one of attnres_dtype, or one that does not fit here */
    ATTNRES_ERROR_SIZE,     /* width, block size or a count is out of range, or does not match */
    ATTNRES_ERROR_STRIDE,   /* a stride is negative, or not zero and smaller than what it steps over */
    ATTNRES_ERROR_OVERFLOW, /* sizes multiply to more than an address can hold */
    ATTNRES_ERROR_VALUE,    /* eps negative or not finite, scale not finite, bias NaN or +Inf */
    ATTNRES_ERROR_OVERLAP,  /* an output overlaps something it must not */
    ATTNRES_ERROR_STATE,    /* the stream is not in a state that allows this call */
    ATTNRES_ERROR_LEVEL     /* this level is not built, or not allowed on this machine */
} attnres_status;

/* One line of English for a status; never NULL. */
ATTNRES_API const char *attnres_status_string(attnres_status status);

/* "major.minor.patch" of the library that runs (the header's own is in the macros above). */
ATTNRES_API const char *attnres_version(void);

/* ---- Elements -------------------------------------------------------------------------- */

/* What a row is stored in. Sums are kept in the accumulator type: double for ATTNRES_F64, float
 * for the three others. Queries and gains are always given in the accumulator type. f16 is IEEE
 * binary16, bf16 the upper half of binary32; both are two bytes, native byte order. */
typedef enum attnres_dtype {
    ATTNRES_F32 = 1,
    ATTNRES_F64 = 2,
    ATTNRES_F16 = 3,
    ATTNRES_BF16 = 4
} attnres_dtype;

/* Bytes of one element; 0 for a value that is not a dtype. */
ATTNRES_API size_t attnres_dtype_size(attnres_dtype dtype);

/* The accumulator type of a dtype: ATTNRES_F64 for ATTNRES_F64, else ATTNRES_F32. */
ATTNRES_API attnres_dtype attnres_dtype_accumulator(attnres_dtype dtype);

/* What all row sets of one call have in common. width must not be 0. */
typedef struct attnres_shape {
    attnres_dtype dtype;
    size_t tokens;
    size_t width;
} attnres_shape;

/* One row per token: row t starts at element t * stride of data. stride 0 means width (rows one
 * after the other). Any other stride below width, and any negative one, is an error. A list of
 * these describes every layout: pointer lists, block-major banks [K][T][d] (row set k starts at
 * k*T*d, stride d), token-major banks [T][K][d] (row set k starts at k*d, stride K*d). */
typedef struct attnres_rows {
    const void *data;
    ptrdiff_t stride;
} attnres_rows;

typedef struct attnres_rows_out {
    void *data;
    ptrdiff_t stride;
} attnres_rows_out;

/* One number per source and token: entry (s, t) is element s * source_stride + t * token_stride.
 * source_stride 0 means tokens * token_stride, token_stride 0 means 1: [sources][tokens]. Which
 * type the numbers have is said where it is used. No two entries may share an element. */
typedef struct attnres_per_source {
    void *data;
    ptrdiff_t source_stride;
    ptrdiff_t token_stride;
} attnres_per_source;

/* ---- Block summation ------------------------------------------------------------------- */

/* How many sources `layers` earlier outputs make with blocks of `block_size` outputs, the
 * embedding included: 1 + ceil(layers / block_size). 0 if block_size is 0. A "layer" is whatever
 * the caller counts: the paper and this call count sublayer outputs (attention and feed-forward
 * count one each), Kimi K3's attn_res_block_size counts transformer layers of two. */
ATTNRES_API size_t attnres_source_count(size_t layers, size_t block_size);

typedef struct attnres_block_sum_args {
    const attnres_rows *outputs; /* [layers] earlier layer outputs, oldest first */
    size_t layers;               /* 0 is legal */
    size_t block_size;           /* outputs per block, at least 1 */
    const attnres_rows_out *sums; /* [sum_count] receives the block sums, oldest first */
    size_t sum_count; /* must be attnres_source_count(layers, block_size) - 1: no empty partial */
} attnres_block_sum_args;

/* Adds each group of block_size consecutive outputs up, in chronological order, in the
 * accumulator type, with one rounding at the end; the remainder, if there is one, makes one
 * partial sum. B_j = sum of h_i for i = j*m .. (j+1)*m - 1 (arXiv 2603.15031, section 3.2).
 * Each sum may be the same rows as one of the outputs of its own block, or be apart. */
ATTNRES_API attnres_status attnres_block_sum(const attnres_shape *shape,
                                             const attnres_block_sum_args *args);

/* ---- The read -------------------------------------------------------------------------- */

/* What the output norm normalises: the mix rounded to the dtype (what the reference model does,
 * the default) or the mix as it stands in the accumulator. The same for f32 and f64. */
typedef enum attnres_norm_policy {
    ATTNRES_NORM_REFERENCE = 0,
    ATTNRES_NORM_FUSED = 1
} attnres_norm_policy;

/* A softmax fold that can be gone on with, one per token: running maximum, sum of exponentials and
 * unnormalised mix. A maximum of -Inf with a sum of 0 is the empty fold; its mix is not looked at. */
typedef struct attnres_state {
    double *max;          /* [tokens] */
    double *sum;          /* [tokens] */
    void *mix;            /* rows of `width` in the accumulator type */
    ptrdiff_t mix_stride; /* distance of its rows in elements; 0 means width */
} attnres_state;

typedef struct attnres_read_args {
    /* What is read: the bank's row sets, then the prefix. At least one of them, or `resume`. */
    const attnres_rows *sources; /* [source_count] completed sources, oldest first */
    size_t source_count;
    attnres_rows prefix; /* the live partial block sum; data NULL: none */

    /* Before the read: prefix = prefix + deltas[0] + deltas[1] ..., one rounding. With no prefix
     * the deltas alone become it. The sum is stored in prefix_out and/or push. */
    const attnres_rows *deltas; /* [delta_count] */
    size_t delta_count;
    attnres_rows_out prefix_out; /* may be the same rows as prefix or as a delta */
    attnres_rows_out push;       /* a bank row set that receives the (new) prefix as well */

    /* How sources are scored. */
    const void *query;  /* [width] in the accumulator type, key-norm gain folded in */
    double eps;         /* added to the mean square; finite, not negative; 0 means 0 */
    double scale;       /* factor on every logit; 0 means 1 */
    const double *bias; /* [number of sources, prefix last] added to the logits; NULL: none.
                           -Inf removes a source */

    /* Go on from this stored fold (see attnres_accumulate), which is not changed. */
    const attnres_state *resume;

    /* Results; each may be absent (data NULL), not all of them. */
    attnres_rows_out retrieved;   /* the mix; may be the same rows as a source, prefix or delta */
    attnres_rows_out normed;      /* the mix, RMS-normalised; likewise */
    const void *norm_gain;        /* [width] in the accumulator type; NULL: ones */
    double norm_eps;              /* like eps */
    attnres_norm_policy norm_policy;
    attnres_per_source weights; /* in the dtype; the prefix comes last. Not with `resume` */
    attnres_per_source logits;  /* in double; scale and bias included */
} attnres_read_args;

/* The fused norm-dot-softmax-mix described at the top of this header, for every token. With one
 * source the result is that row, bit for bit. Any number of sources is read in fixed scratch;
 * with more than ATTNRES_SOURCES_FAST of them rows are scored several times, and then no result
 * may be the same rows as a source.
 *
 *     normed_i = (v_i * (1 / sqrt(mean(v^2) + norm_eps))) * norm_gain_i,    v the mix
 *
 * The steps, their order and their roundings are those of Kimi K3's reference: add the deltas,
 * read, push the raw prefix, normalise. One call gives the same bits as the same steps one by
 * one. A source whose logit is -Inf has weight 0 and contributes nothing, whatever its row holds
 * otherwise; if none is left, or a logit is +Inf or NaN, result and weights are NaN. The mix is
 * divided by the sum of the exponentials at its end, so results above (largest finite number /
 * number of sources) may overflow to Inf. */
ATTNRES_API attnres_status attnres_read(const attnres_shape *shape, const attnres_read_args *args);

#define ATTNRES_SOURCES_FAST 192

/* ---- Both in one call ------------------------------------------------------------------ */

typedef struct attnres_block_read_args {
    attnres_rows embedding;      /* source 0 */
    const attnres_rows *outputs; /* [layers] earlier layer outputs, oldest first */
    size_t layers;
    size_t block_size;
    const void *query; /* these four as in attnres_read_args */
    double eps;
    double scale;
    const double *bias;
    attnres_rows_out retrieved; /* required; apart from everything else */
    attnres_per_source weights; /* in the dtype; data NULL: not wanted */
    const attnres_rows_out *sources; /* [source_count] receives the sources. sources[0] gets a copy
                                        of the embedding; its data may be NULL: no copy */
    size_t source_count; /* must be attnres_source_count(layers, block_size) */
} attnres_block_read_args;

/* Block summation, then the read over embedding and sums, token by token while the rows are hot.
 * Gives the three results of the function this library was created from: retrieved
 * representation, attention weights, block sources. Same bits as attnres_block_sum followed by
 * attnres_read. */
ATTNRES_API attnres_status attnres_block_read(const attnres_shape *shape,
                                              const attnres_block_read_args *args);

/* ---- The query ------------------------------------------------------------------------- */

typedef struct attnres_vector {
    attnres_dtype dtype;
    const void *data;
    size_t length;
} attnres_vector;

/* query_i = gain_i * projection_i, the product rounded once to the accumulator type of `dtype`
 * (the sources' dtype). gain NULL stands for ones. projection and gain may be of any dtype each;
 * both must have length `width`, a gain without data is an error. A checkpoint's bf16 pair
 * (...res_norm.weight, ...res_proj.weight) must be folded this way and not in bf16. query may not
 * overlap the inputs. */
ATTNRES_API attnres_status attnres_make_query(attnres_dtype dtype, size_t width,
                                              const attnres_vector *projection,
                                              const attnres_vector *gain, void *query);

/* ---- Levels ---------------------------------------------------------------------------- */

/* A level is one build of all kernels for a set of CPU features. Higher ones run faster; none
 * gives other results. */
typedef enum attnres_level {
    ATTNRES_LEVEL_SCALAR = 0, /* plain C for the architecture's baseline */
    ATTNRES_LEVEL_AVX2 = 1,   /* x86-64: AVX, AVX2, FMA, F16C */
    ATTNRES_LEVEL_AVX512 = 2, /* x86-64: all of avx2, AVX-512 F, BW, DQ, VL */
    ATTNRES_LEVEL_NEON = 3    /* AArch64: Advanced SIMD */
} attnres_level;

/* The level that runs. Chosen at the first call of anything: the highest one that is built, that
 * CPU and operating system support, and that ATTNRES_LEVEL allows. ATTNRES_LEVEL holds a level's
 * name and only ever lowers: the highest usable level not above it in this architecture's order
 * is taken. A value that is not a level of this architecture is ignored, which the reason says. */
ATTNRES_API attnres_level attnres_current_level(void);

/* Switches to another level, for all threads, calls that run already excepted. Never above what
 * was chosen at the first call: ATTNRES_ERROR_LEVEL, and nothing changes. */
ATTNRES_API attnres_status attnres_set_level(attnres_level level);

/* Why this level runs, one line of English. Valid until the process ends. */
ATTNRES_API const char *attnres_level_reason(void);

/* "scalar", "avx2", "avx512", "neon"; "unknown" for a value that is not a level. */
ATTNRES_API const char *attnres_level_name(attnres_level level);

/* The level of that name. ATTNRES_ERROR_LEVEL, and *level unchanged, for any other. */
ATTNRES_API attnres_status attnres_level_from_name(const char *name, attnres_level *level);

typedef struct attnres_level_report {
    attnres_level level;
    int built;       /* part of this library */
    int usable;      /* built, and allowed by CPU, operating system and ATTNRES_LEVEL */
    const char *why; /* what is missing, or "usable" */
} attnres_level_report;

/* Fills at most `capacity` reports, lowest level of this architecture first, and returns how many
 * there are. list may be NULL if capacity is 0. */
ATTNRES_API size_t attnres_level_reports(attnres_level_report *list, size_t capacity);

typedef struct attnres_feature {
    const char *name; /* "avx2", "fma", "os-zmm", ... */
    int present;
} attnres_feature;

/* The CPU features and operating-system states that levels depend on, as they were seen, in the
 * same manner. */
ATTNRES_API size_t attnres_features(attnres_feature *list, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
