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
    ATTNRES_ERROR_STRIDE,   /* a stride is negative, or not zero and smaller than what it steps over
                             */
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
    const attnres_rows *outputs;  /* [layers] earlier layer outputs, oldest first */
    size_t layers;                /* 0 is legal */
    size_t block_size;            /* outputs per block, at least 1 */
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
 * unnormalised mix. A maximum of -Inf with a sum of 0 is the empty fold; its mix is not looked at.
 */
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
    attnres_rows_out retrieved; /* the mix; may be the same rows as a source, prefix or delta */
    attnres_rows_out normed;    /* the mix, RMS-normalised; likewise */
    const void *norm_gain;      /* [width] in the accumulator type; NULL: ones */
    double norm_eps;            /* like eps */
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
    attnres_rows_out retrieved;      /* required; apart from everything else */
    attnres_per_source weights;      /* in the dtype; data NULL: not wanted */
    const attnres_rows_out *sources; /* [source_count] receives the sources. sources[0] gets a copy
                                        of the embedding; its data may be NULL: no copy */
    size_t source_count;             /* must be attnres_source_count(layers, block_size) */
} attnres_block_read_args;

/* Block summation, then the read over embedding and sums, token by token while the rows are hot.
 * Gives the three results of the function this library was created from: retrieved
 * representation, attention weights, block sources. Same bits as attnres_block_sum followed by
 * attnres_read. */
ATTNRES_API attnres_status attnres_block_read(const attnres_shape *shape,
                                              const attnres_block_read_args *args);

/* ---- Two phases: many queries over one bank, the live prefix later --------------------- */

/* Makes every token's fold the empty one. */
ATTNRES_API attnres_status attnres_state_clear(const attnres_shape *shape,
                                               const attnres_state *state);

typedef struct attnres_accumulate_args {
    const attnres_rows *sources; /* [source_count] */
    size_t source_count;
    const void *const *queries; /* [query_count] vectors of `width` in the accumulator type */
    size_t query_count;
    double eps; /* these three as in attnres_read_args; one bias per source, for all queries */
    double scale;
    const double *bias;
    const attnres_state *states;      /* [query_count] goes on from these, and stores them again */
    const attnres_per_source *logits; /* [query_count] in double; NULL, or data NULL: not wanted */
} attnres_accumulate_args;

/* Extends the stored folds of many queries by the same sources, reading each row once per few
 * queries. The queries of a block's read sites do not depend on activations, so all of them can be
 * folded over the bank at once (arXiv 2603.15031, algorithm 1; Kimi K3: 24 at a time); attnres_read
 * with `resume` goes on with the live prefix. The bits are those of the read in one go. States must
 * not overlap sources, queries or each other. */
ATTNRES_API attnres_status attnres_accumulate(const attnres_shape *shape,
                                              const attnres_accumulate_args *args);

/* result = mix / sum of a stored fold: attnres_read with `resume` and no more sources. NaN for an
 * empty fold. */
ATTNRES_API attnres_status attnres_finish(const attnres_shape *shape, const attnres_state *state,
                                          attnres_rows_out retrieved);

/* ---- The two halves of a read, for a width that is sharded over ranks ------------------ */

typedef struct attnres_score_args {
    const attnres_rows *sources; /* [source_count] this rank's columns: shape->width of them */
    size_t source_count;
    const void *query;          /* [width] this rank's columns of the query, in the accumulator */
    attnres_per_source squares; /* in double: sum of x_i * x_i over these columns */
    attnres_per_source dots;    /* in double: sum of x_i * q_i over these columns */
} attnres_score_args;

/* The two sums that a logit is made of, for the columns at hand. The host adds both up over its
 * ranks. Sums are formed in the accumulator type and, where they leave its normal range, again in
 * double; f64 sums that overflow stay Inf. A sum of partial sums has one rounding more per rank
 * than the unsharded one. */
ATTNRES_API attnres_status attnres_score(const attnres_shape *shape,
                                         const attnres_score_args *args);

/* dot / sqrt(squares / width + eps), of sums over the whole width; 0 for an all-zero row. */
ATTNRES_API double attnres_combine(double squares, double dot, size_t width, double eps);

typedef struct attnres_mix_args {
    const attnres_rows *sources; /* [source_count] */
    size_t source_count;
    attnres_per_source logits;  /* in double, read only; scale and bias already applied */
    attnres_rows_out retrieved; /* required; may be the same rows as a source, if there are at most
                                   ATTNRES_SOURCES_FAST */
    attnres_per_source weights; /* in the dtype; data NULL: not wanted */
} attnres_mix_args;

/* The other half: softmax over the given logits, and the mix. attnres_read is the same as scoring
 * and mixing. */
ATTNRES_API attnres_status attnres_mix(const attnres_shape *shape, const attnres_mix_args *args);

/* ---- Streaming: the state of a runtime's layer loop ------------------------------------ */

/* When a growing prefix is rounded to the dtype. */
typedef enum attnres_rounding {
    ATTNRES_ROUND_EACH = 0, /* at every addition, as Kimi K3 and its runtimes do */
    ATTNRES_ROUND_ONCE = 1  /* kept in the accumulator type, rounded where it is read or pushed: the
                               block sum of attnres_block_sum */
} attnres_rounding;

typedef struct attnres_stream_config {
    attnres_shape shape;
    size_t
        capacity; /* bank rows per token, at least 1: the embedding and one for each further push */
    attnres_rounding rounding;
} attnres_stream_config;

/* A bank, a prefix and how far they are. Lives in memory of the caller, points nowhere else, needs
 * no destruction; not to be copied, for it holds pointers into itself. Calls on one stream must not
 * run at the same time; streams are independent, so split tokens over one stream per thread. */
typedef struct attnres_stream attnres_stream;

/* Bytes a stream needs; 0 if the configuration is not valid. */
ATTNRES_API size_t attnres_stream_size(const attnres_stream_config *config);

/* Sets a stream up in memory[bytes], which may have any alignment, and has it wait for begin. */
ATTNRES_API attnres_status attnres_stream_init(const attnres_stream_config *config, void *memory,
                                               size_t bytes, attnres_stream **stream);

/* Starts over: empty bank, the embedding as prefix. Kimi K3 pushes it in its first layer; to have
 * it as source 0 at once, as the seed does, push next. */
ATTNRES_API attnres_status attnres_stream_begin(attnres_stream *stream, attnres_rows embedding);

/* prefix = prefix + output of a layer, or just that output after a push. ERROR_STATE before
 * begin. */
ATTNRES_API attnres_status attnres_stream_add(attnres_stream *stream, attnres_rows output);

/* Moves the prefix into the bank; the next block starts empty. ERROR_STATE before begin, without a
 * prefix, or if the bank is full. */
ATTNRES_API attnres_status attnres_stream_push(attnres_stream *stream);

/* One read site. Everything here is as in attnres_read_args; no output may touch the stream's
 * memory. */
typedef struct attnres_stream_read_args {
    const attnres_rows *outputs; /* [output_count] layer outputs to add to the prefix first */
    size_t output_count;
    int push; /* after the read, move the prefix into the bank */
    const void *query;
    double eps;
    double scale;
    const double *bias; /* one per source: those in the bank, then the prefix if there is one */
    attnres_rows_out retrieved;
    attnres_rows_out normed;
    const void *norm_gain;
    double norm_eps;
    attnres_norm_policy norm_policy;
    attnres_per_source weights;
    attnres_per_source logits;
} attnres_stream_read_args;

/* Adds, reads and pushes in one pass. The same bits as attnres_stream_add for each output, a read,
 * attnres_stream_push, with one exception: with ATTNRES_ROUND_EACH several outputs at once are
 * added with one rounding. On any error the stream is as it was. */
ATTNRES_API attnres_status attnres_stream_read(attnres_stream *stream,
                                               const attnres_stream_read_args *args);

/* Fills at most `capacity` row sets with the present sources, bank first, prefix last, and returns
 * how many there are (0 before begin). Valid until the next call that changes the stream. */
ATTNRES_API size_t attnres_stream_sources(const attnres_stream *stream, attnres_rows *list,
                                          size_t capacity);

/* For the next pipeline stage: the used part of the state as bytes. They may be imported by any
 * stream of the same shape and rounding on a machine of the same byte order, if its capacity is
 * enough. export_size is 0 before begin. */
ATTNRES_API size_t attnres_stream_export_size(const attnres_stream *stream);
ATTNRES_API attnres_status attnres_stream_export(const attnres_stream *stream, void *bytes,
                                                 size_t size);

/* ERROR_ARGUMENT if these bytes are not a whole export, ERROR_SIZE if they do not fit this stream;
 * the stream is as it was then. */
ATTNRES_API attnres_status attnres_stream_import(attnres_stream *stream, const void *bytes,
                                                 size_t size);

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
