// SPDX-License-Identifier: Apache-2.0
// Exceptions in tasks: the text of the first arrives, with its code and its type.
#include <new>

#include "check.hpp"

namespace
{

struct special : std::exception {
    const char *what() const noexcept override
    {
        return "special";
    }
    int number = 42;
};

void throw_code(filch::view<double>)
{
    throw filch::failure(9, "text of a kernel");
}

void throw_any(filch::view<double>)
{
    throw special();
}

filch::error run_one(filch::runtime &runtime, const filch::data &x, int kind)
{
    filch::graph g = runtime.graph();
    const std::string text(400, 'w'); /* longer than a record's text */
    g.add(
        filch::task("boom").label("here"),
        [kind, text](filch::view<double>) {
            switch (kind) {
            case 0:
                throw std::runtime_error("the pivot is 0");
            case 1:
                throw filch::failure(17, "row 17");
            case 2:
                throw special();
            case 3:
                throw 3;
            case 4:
                throw filch::failure(0, "code 0");
            case 5:
                throw std::runtime_error(text);
            default:
                return 5;
            }
        },
        filch::readwrite(x.tile(0)));
    filch::job job = g.submit();
    const filch::error waited = thrown_by(FILCH_TASK_FAILED, [&] { job.wait(); });
    const filch::error again = thrown_by(FILCH_TASK_FAILED, [&] { job.wait_for(-1); });
    CHECK(std::string(waited.what()) == again.what() && waited.code() == again.code());
    const filch::error run = thrown_by(FILCH_TASK_FAILED, [&] { g.run(); });
    CHECK(run.code() == waited.code());
    CHECK(kind > 5 || std::string(run.what()) == waited.what());
    return waited;
}

void test_kinds(filch::runtime &runtime, const filch::data &x)
{
    const filch::error text = run_one(runtime, x, 0);
    CHECK(contains(text.what(), "the pivot is 0") && contains(text.what(), "here on host:0"));
    CHECK(text.code() == filch::thrown && std::string(text.label()) == "here");
    CHECK(std::string(text.device()) == "host:0" && std::string(text.name()) == "TASK_FAILED");
    const filch::error code = run_one(runtime, x, 1);
    CHECK(code.code() == 17 && contains(code.what(), "row 17"));
    const filch::error typed = run_one(runtime, x, 2);
    CHECK(contains(typed.what(), "special"));
    try {
        std::rethrow_exception(typed.cause());
    } catch (const special &caught) {
        CHECK(caught.number == 42);
    }
    const filch::error other = run_one(runtime, x, 3);
    CHECK(contains(other.what(), "no std::exception") && other.code() == filch::thrown);
    CHECK(run_one(runtime, x, 4).code() == filch::thrown);
    const filch::error longer = run_one(runtime, x, 5);
    CHECK(contains(longer.what(), std::string(400, 'w')));
    const filch::error returned = run_one(runtime, x, 6);
    CHECK(returned.code() == 5 && returned.cause() == nullptr);
}

void test_kernels(filch::runtime &runtime, const filch::data &x)
{
    filch::graph g = runtime.graph();
    g.add(runtime.kernel<throw_code>("throw_code"), filch::readwrite(x.tile(0)));
    const filch::error coded = thrown_by(FILCH_TASK_FAILED, [&] { g.run(); });
    CHECK(coded.code() == 9 && contains(coded.what(), "text of a kernel"));
    filch::graph h = runtime.graph();
    h.add(runtime.kernel<throw_any>("throw_any"), filch::readwrite(x.tile(0)));
    const filch::error any = thrown_by(FILCH_TASK_FAILED, [&] { h.run(); });
    CHECK(any.code() == filch::thrown && contains(any.what(), special().what()));
    CHECK(!contains(any.what(), "-2147"));
}

/* Of many failures the first one's text is told, run after run. */
void test_many(filch::runtime &runtime)
{
    std::vector<double> values(3000);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch::graph g = runtime.graph();
    static std::atomic<int> run;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        g.add(
            "one",
            [i](filch::view<double>) {
                throw filch::failure(1 + static_cast<int>(i),
                                     "run " + std::to_string(run) + " task " + std::to_string(i));
            },
            filch::readwrite(x.tile(i)));
    }
    for (run = 0; run < 4; ++run) {
        const filch::error error = thrown_by(FILCH_TASK_FAILED, [&] {
            if (run % 2 == 0) {
                g.run();
            } else {
                g.submit().wait();
            }
        });
        CHECK(contains(error.what(),
                       "run " + std::to_string(run) + " task " + std::to_string(error.code() - 1)));
    }
}

/* Two jobs of one graph: each keeps its text. */
void test_two_jobs(filch::runtime &runtime, const filch::data &x)
{
    filch::graph g = runtime.graph();
    int run = 0;
    g.add(
        "boom",
        [&run](filch::view<double>) { throw std::runtime_error("run " + std::to_string(run)); },
        filch::readwrite(x.tile(0)));
    filch::job first = g.submit();
    while (first.status() == FILCH_NOT_READY) {
        std::this_thread::yield();
    }
    run = 1;
    filch::job second = g.submit();
    CHECK(contains(thrown_by(FILCH_TASK_FAILED, [&] { second.wait(); }).what(), "run 1"));
    CHECK(contains(thrown_by(FILCH_TASK_FAILED, [&] { first.wait(); }).what(), "run 0"));
}

/* A refused run drops no text of the run that goes on; the next run may, and no number of a text is
 * shown in place of one. */
void test_kept(filch::runtime &runtime)
{
    std::atomic<int> calls{0};
    std::atomic<bool> is_first{true};
    door end;
    filch::graph g = runtime.graph();
    for (int i = 0; i < 1500; ++i) {
        g.add("many", [&] {
            const int call = calls++;
            if (call == 1) {
                end.pass();
            }
            throw filch::failure(5, is_first && call == 0 ? "the first" : "a later one");
        });
    }
    const filch::job first = g.submit();
    end.await(1);
    filch_submit_desc wrong = FILCH_SUBMIT_DESC_INIT;
    wrong.size = 1;
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)g.submit(wrong); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.run(wrong); });
    end.open();
    const filch::error kept = thrown_by(FILCH_TASK_FAILED, [&] { first.wait(); });
    CHECK(calls == 1500 && kept.code() == 5 && contains(kept.what(), "the first"));
    is_first = false;
    CHECK(contains(thrown_by(FILCH_TASK_FAILED, [&] { g.run(); }).what(), "a later one"));
    const filch::error lost = thrown_by(FILCH_TASK_FAILED, [&] { first.wait(); });
    CHECK(lost.code() == filch::thrown && contains(lost.what(), "many on host:0: an exception"));
    CHECK(!contains(lost.what(), "-2147") && !contains(lost.details().text, "-2147"));
    CHECK(filch::failure(FILCH_PENDING, "").code() == filch::thrown);
}

/* An error of an inner job leaves the task that waits for it. */
void test_nested(filch::runtime &runtime, const filch::data &x)
{
    filch::graph inner = runtime.graph();
    inner.add(
        "inner", [](filch::view<double>) { throw std::runtime_error("deep"); },
        filch::readwrite(x.tile(0)));
    filch::graph outer = runtime.graph();
    outer.add("outer", [&inner] { inner.run(); });
    const filch::error error = thrown_by(FILCH_TASK_FAILED, [&] { outer.run(); });
    CHECK(contains(error.what(), "outer on host") && contains(error.what(), "deep"));
    try {
        std::rethrow_exception(error.cause());
    } catch (const filch::error &caught) {
        CHECK(caught.status() == FILCH_TASK_FAILED && std::string(caught.label()) == "inner");
    }
}

void test_elements(filch::runtime &runtime, const filch::data &x)
{
    filch::graph g = runtime.graph();
    const filch::error wrong = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "narrow", [](filch::view<const double>, filch::view<float>) {}, filch::read(x.tile(0)),
            filch::write(x.tile(1)));
    });
    CHECK(contains(wrong.what(), "'narrow', access 1: the view has elements of 4 bytes, the handle "
                                 "of 8"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        (void)runtime.batch(
            2, [](filch::range, filch::view<float>) {}, filch::write(x));
    });
    const filch::error outer = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "outer", [](filch::views<const double>) {}, filch::read(x.tiles(1, 9)));
    });
    CHECK(contains(outer.what(), "'outer', access 0: tiles [1, 9) x [0, 1) are outside the 2 x 1"));
    const filch::error reversed = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "reversed", [](filch::views<const double>) {}, filch::read(x.tiles(2, 1)));
    });
    CHECK(contains(reversed.what(), "access 0: tiles [2, 1) x [0, 1) run backwards"));
    void (*none)(filch::view<double>) = nullptr;
    const filch::error null =
        thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.add("null", none, filch::write(x.tile(0))); });
    CHECK(contains(null.what(), "'null': the function is a null pointer"));
    void (*no_items)(filch::range, filch::view<double>) = nullptr;
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)runtime.batch(2, no_items, filch::write(x)); });
    std::vector<double> moved(2, 1);
    filch::data from = runtime.data(moved), to = std::move(from);
    const filch::error gone = thrown_by(FILCH_INVALID_HANDLE, [&] {
        g.add(
            "gone", [](filch::view<double>) {}, filch::write(from));
    });
    CHECK(contains(gone.what(), "'gone', access 0: the data is moved from"));
    const std::vector<double> constants(2, 1);
    filch::data c = runtime.data(filch::buffer(constants.data(), 2));
    const filch::error denied = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "writes", [](filch::view<double>) {}, filch::write(c));
    });
    CHECK(contains(denied.what(), "can only be read"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)c.acquire(FILCH_WRITE); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.device(99); });
    const filch::error outside = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "outside", [](filch::view<double>) {}, filch::write(x.tile(77)));
    });
    CHECK(contains(outside.what(), "task #0 'outside': access 0: tile (77, 0) is outside the"));
    const filch::error labelled = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            filch::task("outside").label("third"), [](filch::view<double>) {},
            filch::write(x.tile(77)));
    });
    CHECK(contains(labelled.what(), "task #0 'third': access 0: tile (77, 0)"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.add(nullptr, [] {}); });
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { (void)runtime.batch(filch::items(2).name(nullptr), [](filch::range) {}); });
    g.run(); /* nothing was added */
}

} // namespace

int main()
{
    filch::runtime runtime("host:1");
    std::vector<double> values(2, 1);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    test_kinds(runtime, x);
    test_kernels(runtime, x);
    test_two_jobs(runtime, x);
    test_kept(runtime);
    test_nested(runtime, x);
    test_elements(runtime, x);
    filch::runtime wide("host:3");
    test_many(wide);
    std::printf("failures: texts, codes and types arrive\n");
    return 0;
}
