/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of Jacobi's method on a rectangle, cut into a strip of columns for each rank of MPI. A rank
 * has one graph for all steps. Messages are tasks of the graph: they end when MPI is done with
 * their requests, and hold no worker meanwhile. mpirun -n 2 halo_mpi [TRACE]: with FILCH_TRACE=1 in
 * the environment each rank writes its trace to TRACE.RANK. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <filch/filch.h>

enum { ROWS = 256, TILES = 6, WIDTH = 8, COLS = TILES * WIDTH, STRIP = ROWS * (COLS + 2) };
enum { STEPS = 40, MOST = 8, REQUESTS = 8 }; /* ranks; two neighbours, directions and steps */

/* A message of one column to or from the rank at the right or left side. */
typedef struct message { int peer, tag; bool is_receive, is_right; } message;
/* One thread runs the tasks and tests their requests: no lock is needed. */
static MPI_Request requests[REQUESTS];
static filch_pending pending[REQUESTS]; /* the requests' tasks */
static int rank, ranks;

/* Starts a request on the column next to the peer. The task ends later. */
static int pass(const filch_call *call)
{
    const message *m = call->args;
    const filch_view *v = &call->views[0];
    double *column = (double *)v->ptr + (m->is_right ? v->cols - 1 : 0) * v->ld;
    int i = 0;
    while (i < REQUESTS && requests[i] != MPI_REQUEST_NULL)
        i++;
    if (i == REQUESTS || filch_call_pend(call, &pending[i]) != FILCH_OK)
        return 1;
    if (m->is_receive)
        MPI_Irecv(column, ROWS, MPI_DOUBLE, m->peer, m->tag, MPI_COMM_WORLD, &requests[i]);
    else
        MPI_Isend(column, ROWS, MPI_DOUBLE, m->peer, m->tag, MPI_COMM_WORLD, &requests[i]);
    return FILCH_PENDING;
}

static void end_messages(void) /* those whose requests are done */
{
    int count = 0, done[REQUESTS];
    MPI_Testsome(REQUESTS, requests, &count, done, MPI_STATUSES_IGNORE);
    for (int i = 0; count != MPI_UNDEFINED && i < count; i++)
        filch_pending_end(pending[done[i]], 0, NULL);
}

static void smooth_column(double *to, const double *left, const double *mid, const double *right)
{
    to[0] = mid[0], to[ROWS - 1] = mid[ROWS - 1];
    for (int i = 1; i < ROWS - 1; i++)
        to[i] = 0.25 * ((left[i] + right[i]) + (mid[i - 1] + mid[i + 1]));
}

static int smooth(const filch_call *call)
{
    const filch_view *left = call->views, *mid = left + 1, *right = left + 2, *to = left + 3;
    const double *l = (const double *)left->ptr + (left->cols - 1) * left->ld, *m = mid->ptr;
    for (uint64_t j = 0; j < mid->cols; j++, l = m, m += mid->ld)
        smooth_column((double *)to->ptr + j * to->ld, l, m,
                      j + 1 < mid->cols ? m + mid->ld : (const double *)right->ptr);
    return 0;
}

static int add(filch_graph *graph, filch_codelet *code, const message *args, uint32_t count,
               const filch_access *tiles)
{
    filch_task_desc task = {.size = sizeof task, .codelet = code, .args = args, .accesses = tiles,
                            .access_count = count, .priority = args != NULL}; /* messages first */
    return filch_graph_add(graph, &task, NULL) != FILCH_OK;
}

/* A step reads x and writes y. A tile beside the strip's end waits for a message, others do not. */
static int add_step(filch_graph *g, filch_codelet *const code[2], filch_data *x, filch_data *y,
                    int tag)
{
    int bad = 0;
    for (uint32_t right = 0; right < 2; right++) {
        message in = {right ? rank + 1 : rank - 1, tag, 1, right}, out = {in.peer, tag, 0, right};
        if (in.peer >= 0 && in.peer < ranks) /* else the rectangle's edge, which stays as it is */
            bad |= add(g, code[0], &in, 1, (filch_access[]){FILCH_W(x, 0, right * (TILES + 1))}) ||
                   add(g, code[0], &out, 1, (filch_access[]){FILCH_R(x, 0, right ? TILES : 1)});
    }
    for (uint32_t j = 1; j <= TILES; j++)
        bad |= add(g, code[1], NULL, 4, (filch_access[]){FILCH_R(x, 0, j - 1), FILCH_R(x, 0, j),
                                        FILCH_R(x, 0, j + 1), FILCH_W(y, 0, j)});
    return bad;
}

static int solve(filch_runtime *rt, double *const strips[2])
{
    const uint64_t cuts[TILES + 2] = {1, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, 1};
    filch_codelet_desc codes[] = {
        {.size = sizeof *codes, .name = "message", .host = pass, .arg_size = sizeof(message),
         .flags = FILCH_CODELET_MAY_PEND},
        {.size = sizeof *codes, .name = "smooth", .host = smooth}};
    filch_data_desc strip = {.size = sizeof strip, .element = sizeof(double), .rows = ROWS,
                             .cols = COLS + 2, .col_cuts = cuts, .col_cut_count = TILES + 2};
    filch_graph_desc desc = {.size = sizeof desc, .priorities = FILCH_PRIORITIES_CALLER};
    filch_codelet *code[2] = {NULL, NULL};
    filch_data *x[2] = {NULL, NULL};
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    int bad = filch_graph_create(rt, &desc, &graph) != FILCH_OK;
    for (int i = 0; i < 2; i++) {
        strip.ptr = strips[i];
        bad |= filch_data_create(rt, &strip, &x[i]) != FILCH_OK;
        bad |= filch_codelet_create(rt, &codes[i], &code[i]) != FILCH_OK;
    }
    for (int i = 0; i < REQUESTS; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int k = 0; !bad && k < STEPS; k++) /* two steps' messages may be under way: two tags */
        bad |= add_step(graph, code, x[k % 2], x[1 - k % 2], k % 2);
    bad = bad || filch_graph_submit(graph, NULL, &job) != FILCH_OK;
    for (; !bad && filch_job_status(job) == FILCH_NOT_READY; end_messages())
        filch_runtime_poll(rt, -1, NULL); /* runs what can run now */
    return bad || filch_job_status(job) != FILCH_OK || filch_job_release(job) != FILCH_OK;
}

int main(int argc, char **argv)
{
    static double x[2][STRIP], plain[2][ROWS * (COLS * MOST + 2)]; /* a strip; the rectangle */
    filch_runtime_desc desc = {.size = sizeof desc, .devices = "host:1", .drive = FILCH_DRIVE_POLL};
    filch_runtime *rt = NULL;
    MPI_Init(&argc, &argv); /* one thread calls MPI: in poll mode the tasks are the caller's */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int columns = COLS * ranks + 2, any = 0, bad = ranks > MOST;
    const size_t first = (size_t)rank * COLS * ROWS;
    for (int i = 0; !bad && i < columns * ROWS; i++)
        plain[0][i] = plain[1][i] = i * 7 % 17;
    for (int i = 0; !bad && i < 2; i++)
        memcpy(x[i], &plain[i][first], sizeof x[i]);
    char path[4096] = "";
    bad = bad || filch_runtime_create(&desc, NULL, &rt) || solve(rt, (double *[]){x[0], x[1]});
    if (!bad && argc > 1 && snprintf(path, sizeof path, "%s.%d", argv[1], rank) > 0)
        bad = filch_trace_write(rt, path) != FILCH_OK;
    if (bad || filch_runtime_destroy(rt) != FILCH_OK)
        MPI_Abort(MPI_COMM_WORLD, 1); /* others may wait for this rank's messages */
    for (int k = 0; k < STEPS; k++) /* the same steps on the whole rectangle */
        for (int j = 1; j + 1 < columns; j++) {
            const double *mid = &plain[k % 2][j * ROWS];
            smooth_column(&plain[1 - k % 2][j * ROWS], mid - ROWS, mid, mid + ROWS);
        }
    bad = memcmp(&x[STEPS % 2][ROWS], &plain[STEPS % 2][first + ROWS], COLS * ROWS * 8) != 0;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d steps: %s\n", ranks, STEPS, any ? "wrong" : "as by a plain loop");
    MPI_Finalize();
    return any;
}
