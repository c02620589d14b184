/* Products x W^T + b in float32 for few rows (tokens), where the way of the weights from memory takes the time.

   oneDNN's kernel waits for memory and then computes; this one computes with one piece of the weights while the next is
   on its way. panels.py compiles it for the processor at hand and says how the weights lie. GCC only: another compiler
   would bring an OpenMP of its own beside torch's. */
#if !defined(__GNUC__) || defined(__clang__)
#error "only with GCC"
#endif
#include <string.h>

/* A register holds LANES floats. The sums of a tile, ROWS by VECTORS registers, stay in them all the way. */
#if defined(__AVX512F__)
#define LANES 16
#define ROWS 8
#elif defined(__AVX2__) && defined(__FMA__)
#define LANES 8
#define ROWS 4
#else
#error "only with AVX-512, or with AVX2 and FMA"
#endif
#define VECTORS 3
#define PANEL (LANES * VECTORS) /* outputs that lie side by side */
#define DEPTH 256               /* inputs at a time: that much of a panel, 48 KB, stays in the nearest caches */
#define CHUNK 512               /* rows at a time: that many of them, DEPTH inputs each, in a second-level one */
#define LINE 16                 /* floats that come from memory at once */
#define ALONE 100000            /* fewer multiplications than this are no work for a second thread */

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));

int panel_width(void) { return PANEL; }

/* out (rows, PANEL) = bias, or what is in out where that is 0, + x (rows, depth) times weights (depth, PANEL).
   Meanwhile a line for each of the inputs is fetched from `next` on. The number of rows is a constant to its callers. */
static inline __attribute__((always_inline)) void
tile(int rows, long depth, const float *x, long inputs, const float *weights, const float *next, const float *bias,
     float *out, long outputs)
{
    vector sums[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = *(const vector *)(bias ? bias + v * LANES : out + r * outputs + v * LANES);
    for (long i = 0; i < depth; i++) {
        const vector *these = (const vector *)(weights + i * PANEL);
        __builtin_prefetch(next + i * LINE, 0, 2);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < VECTORS; v++)
                sums[r][v] += x[r * inputs + i] * these[v];
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            *(vector *)(out + r * outputs + v * LANES) = sums[r][v];
}

/* The same for any number of rows. */
static void
tiles(long rows, long depth, const float *x, long inputs, const float *weights, const float *next, const float *bias,
      float *out, long outputs)
{
#define CASE(n) case n: tile(n, depth, x, inputs, weights, next, bias, out, outputs); break
    for (; rows > 0; rows -= ROWS) {
        switch (rows) {
        CASE(1); CASE(2); CASE(3);
#if ROWS == 8
        CASE(4); CASE(5); CASE(6); CASE(7);
#endif
        default: tile(ROWS, depth, x, inputs, weights, next, bias, out, outputs);
        }
        x += ROWS * inputs, out += ROWS * outputs, next += depth * LINE;
    }
#undef CASE
}

/* out (rows, PANEL) = bias + x (rows, inputs) times one panel (inputs, PANEL). */
static void panel(long rows, const float *x, long inputs, const float *weights, const float *bias, float *out, long outputs)
{
    for (long i = 0; i < inputs; i += DEPTH) {
        long depth = inputs - i < DEPTH ? inputs - i : DEPTH;
        const float *these = weights + i * PANEL;
        tiles(rows, depth, x + i, inputs, these, these + depth * PANEL, i ? 0 : bias, out, outputs);
    }
}

/* out (rows, outputs) = x (rows, inputs) W^T + bias.

   weights: as many panels (inputs, PANEL) as it takes, W's rows in their order, the last panel filled up.
   bias: one number for each output, filled up likewise. */
void product(const float *x, const float *weights, const float *bias, float *out, long rows, long inputs, long outputs,
             int threads)
{
    long panels = (outputs + PANEL - 1) / PANEL;
    for (long start = 0; start < rows; start += CHUNK) {
        long these = rows - start < CHUNK ? rows - start : CHUNK;
        const float *from = x + start * inputs;
        float *to = out + start * outputs;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * inputs * outputs > ALONE)
        for (long p = 0; p < panels; p++) {
            const float *w = weights + p * inputs * PANEL, *b = bias + p * PANEL;
            long columns = outputs - p * PANEL;
            if (columns >= PANEL) {
                panel(these, from, inputs, w, b, to + p * PANEL, outputs);
            } else {
                float whole[ROWS * PANEL];
                for (long r = 0; r < these; r++) {
                    if (r % ROWS == 0)
                        panel(these - r < ROWS ? these - r : ROWS, from + r * inputs, inputs, w, b, whole, PANEL);
                    memcpy(to + r * outputs + p * PANEL, whole + r % ROWS * PANEL, columns * sizeof(float));
                }
            }
        }
    }
}
