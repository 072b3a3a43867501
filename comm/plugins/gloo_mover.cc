// The mover of Gloo: its TCP transport. A plugin, so that the library itself needs no Gloo. Only those headers are used that stand alone in what
// distributions install.
//
// Gloo waits and has no test: what was begun is waited for on a thread, of which there are as many as requests are under way.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "comm/mover/mover.h"

namespace {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

constexpr milliseconds for_ever(1000000000); // a deadline is the engine's, which gives up what is late

char text[1024];

// What is under way: messages that were begun, and what is to be done with what came. Where it is over nothing of Gloo's knows its memory any more.
struct pending {
    enum state { BEGUN, DONE, FAILED };
    std::unique_ptr<UnboundBuffer> out, in;
    int sends = 0, receives = 0;
    std::vector<int64_t> values; // of `largest`
    std::function<void()> then;  // of the thread that tests
    std::string words;           // why it failed
    std::atomic<int> state{BEGUN};
    std::mutex mutex; // of the buffers, which go when it is over
    std::condition_variable over;

    void wait() {
        bool all = true;
        try {
            for (int i = 0; all && i < receives; i++) all = in->waitRecv(for_ever);
            for (int i = 0; all && i < sends; i++) all = out->waitSend(for_ever);
            if (!all) words = "given up";
        } catch (const std::exception &e) {
            words = e.what();
            all = false;
        }
        end(all ? DONE : FAILED);
    }

    void end(int how) {
        std::lock_guard<std::mutex> lock(mutex);
        in.reset();
        out.reset();
        state = how;
        over.notify_all();
    }

    void await(std::chrono::microseconds longest) {
        std::unique_lock<std::mutex> lock(mutex);
        over.wait_for(lock, longest, [this] { return state != BEGUN; });
    }

    void give_up() {
        std::lock_guard<std::mutex> lock(mutex);
        if (in) in->abortWaitRecv();
        if (out) out->abortWaitSend();
    }
};

// Threads that wait, which are used again.
class waiters {
  public:
    void add(std::shared_ptr<pending> p) {
        std::lock_guard<std::mutex> lock(mutex_);
        work_.push_back(std::move(p));
        if (idle_ >= work_.size()) ready_.notify_one();
        else threads_.emplace_back([this] { run(); });
    }

    // Ends what they wait for.
    ~waiters() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
            for (const auto &p : active_) p->give_up();
        }
        ready_.notify_all();
        for (std::thread &t : threads_) t.join();
    }

  private:
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            idle_++;
            ready_.wait(lock, [this] { return over_ || !work_.empty(); });
            idle_--;
            if (over_) return;
            const auto here = active_.insert(active_.end(), std::move(work_.back()));
            work_.pop_back();
            lock.unlock();
            (*here)->wait();
            lock.lock();
            active_.erase(here);
        }
    }

    std::mutex mutex_;
    std::condition_variable ready_;
    std::vector<std::shared_ptr<pending>> work_;
    std::list<std::shared_ptr<pending>> active_;
    std::vector<std::thread> threads_;
    size_t idle_ = 0;
    bool over_ = false;
};

struct group {
    int rank, size;
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::transport::Context> context;
    uint64_t collectives = 0;
    waiters threads; // gone first
};

// Gloo writes to connections that the other end has closed as if nobody minded the signal. Threads that are begun meanwhile, Gloo's too, never see it.
class without_sigpipe {
  public:
    without_sigpipe() {
        sigset_t pending_before;
        sigemptyset(&only_);
        sigaddset(&only_, SIGPIPE);
        sigpending(&pending_before);
        was_pending_ = sigismember(&pending_before, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &only_, &mask_);
    }
    ~without_sigpipe() {
        const timespec at_once = {0, 0};
        sigset_t pending_now;
        sigpending(&pending_now);
        if (!was_pending_ && sigismember(&pending_now, SIGPIPE) == 1) sigtimedwait(&only_, nullptr, &at_once);
        pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }

  private:
    sigset_t only_, mask_;
    bool was_pending_;
};

// Runs what may throw.
template <typename F>
int guard(F f) noexcept {
    const without_sigpipe quiet;
    try {
        f();
        return 0;
    } catch (const std::exception &e) {
        std::snprintf(text, sizeof text, "%s", e.what());
    } catch (...) {
        std::snprintf(text, sizeof text, "an exception of unknown type");
    }
    return 1;
}

// ---- joining ----

std::string key_of(int of, int towards) {
    return "gloo/" + std::to_string(of) + "/" + std::to_string(towards);
}

// Each pair of ranks has a connection: a rank tells where it listens for each other one.
void connect(group &g, const clt_mover_options &o) {
    enum { MOST_BYTES = 4096 };
    for (int r = 0; r < g.size; r++) {
        if (r == g.rank) continue;
        const std::vector<char> own = g.context->createPair(r)->address().bytes();
        if (o.set(o.store, key_of(g.rank, r).c_str(), own.data(), own.size())) throw std::runtime_error("");
    }
    for (int r = 0; r < g.size; r++) {
        if (r == g.rank) continue;
        std::vector<char> theirs(MOST_BYTES);
        size_t bytes = theirs.size();
        if (o.get(o.store, key_of(r, g.rank).c_str(), theirs.data(), &bytes)) throw std::runtime_error("");
        theirs.resize(bytes);
        g.context->getPair(r)->connect(theirs);
    }
    g.context->setTimeout(for_ever);
}

int open_group(void **out, const clt_mover_options *o, int *rank, int *size) {
    return guard([&] {
        text[0] = 0;
        std::unique_ptr<group> g(new group);
        *rank = g->rank = o->rank;
        *size = g->size = o->size;
        gloo::transport::tcp::attr attributes;
        attributes.hostname = o->host;
        g->device = gloo::transport::tcp::CreateDevice(attributes);
        g->context = g->device->createContext(g->rank, g->size);
        g->context->setTimeout(milliseconds(1 + static_cast<int64_t>(1000 * o->connect_seconds)));
        connect(*g, *o);
        *out = g.release();
    });
}

// ---- what is begun ----

std::shared_ptr<pending> *of(const clt_request *request) {
    return reinterpret_cast<std::shared_ptr<pending> *>(static_cast<uintptr_t>(request->word));
}

// Begins what `begin` says, which must not leave before all of it is begun or has thrown.
template <typename F>
int start(group *g, clt_request *request, F begin) {
    request->word = 0;
    return guard([&] {
        std::unique_ptr<std::shared_ptr<pending>> p(new std::shared_ptr<pending>(new pending));
        begin(**p);
        if ((*p)->sends + (*p)->receives == 0) (*p)->end(pending::DONE);
        else g->threads.add(*p);
        request->word = reinterpret_cast<uintptr_t>(p.release());
    });
}

void send(pending &p, int to, uint64_t slot, size_t offset, size_t bytes) {
    if (bytes == 0) return;
    p.out->send(to, slot, offset, bytes);
    p.sends++;
}

void receive(pending &p, int from, uint64_t slot, size_t offset, size_t bytes) {
    if (bytes == 0) return;
    p.in->recv(from, slot, offset, bytes);
    p.receives++;
}

std::unique_ptr<UnboundBuffer> buffer(const group *g, const void *data, size_t bytes) {
    return g->context->createUnboundBuffer(const_cast<void *>(data), bytes);
}

size_t sum(const int *bytes, int n) {
    size_t all = 0;
    for (int r = 0; r < n; r++) all += static_cast<size_t>(bytes[r]);
    return all;
}

// Collectives are told apart by their number, messages by lane and tag; those with one slot arrive in order.
constexpr uint64_t collective_slot = uint64_t(1) << 56, message_slot = uint64_t(2) << 56, parting_slot = uint64_t(3) << 56;

int exchange(void *state, const void *out, const int *out_bytes, void *in, const int *in_bytes, clt_request *request) {
    group *g = static_cast<group *>(state);
    const uint64_t slot = collective_slot | g->collectives++;
    return start(g, request, [&](pending &p) {
        p.out = buffer(g, out, sum(out_bytes, g->size));
        p.in = buffer(g, in, sum(in_bytes, g->size));
        for (int i = 1; i < g->size; i++) { // each begins with the next one, so that not all are sent to one
            const int from = (g->rank + g->size - i) % g->size;
            receive(p, from, slot, sum(in_bytes, from), static_cast<size_t>(in_bytes[from]));
        }
        for (int i = 1; i < g->size; i++) {
            const int to = (g->rank + i) % g->size;
            send(p, to, slot, sum(out_bytes, to), static_cast<size_t>(out_bytes[to]));
        }
        std::memcpy(static_cast<char *>(in) + sum(in_bytes, g->rank), static_cast<const char *>(out) + sum(out_bytes, g->rank), static_cast<size_t>(in_bytes[g->rank]));
    });
}

void begin_gather(const group *g, pending &p, uint64_t slot, void *all, const int *bytes) {
    p.out = buffer(g, static_cast<char *>(all) + sum(bytes, g->rank), static_cast<size_t>(bytes[g->rank]));
    p.in = buffer(g, all, sum(bytes, g->size));
    for (int i = 1; i < g->size; i++) {
        const int from = (g->rank + g->size - i) % g->size;
        receive(p, from, slot, sum(bytes, from), static_cast<size_t>(bytes[from]));
    }
    for (int i = 1; i < g->size; i++) send(p, (g->rank + i) % g->size, slot, 0, static_cast<size_t>(bytes[g->rank]));
}

int gather(void *state, void *all, const int *bytes, clt_request *request) {
    group *g = static_cast<group *>(state);
    const uint64_t slot = collective_slot | g->collectives++;
    return start(g, request, [&](pending &p) { begin_gather(g, p, slot, all, bytes); });
}

// Of all ranks' values, which each gets.
int largest(void *state, int64_t *values, int n, clt_request *request) {
    group *g = static_cast<group *>(state);
    const uint64_t slot = collective_slot | g->collectives++;
    return start(g, request, [&](pending &p) {
        const size_t count = static_cast<size_t>(n), size = static_cast<size_t>(g->size);
        p.values.resize(count * size);
        std::memcpy(&p.values[count * static_cast<size_t>(g->rank)], values, count * sizeof *values);
        begin_gather(g, p, slot, p.values.data(), std::vector<int>(size, static_cast<int>(count * sizeof *values)).data());
        pending *here = &p;
        p.then = [here, values, count] {
            for (size_t first = 0; first < here->values.size(); first += count)
                for (size_t i = 0; i < count; i++)
                    if (first == 0 || here->values[first + i] > values[i]) values[i] = here->values[first + i];
        };
    });
}

int broadcast(void *state, void *data, int bytes, int root, clt_request *request) {
    group *g = static_cast<group *>(state);
    const uint64_t slot = collective_slot | g->collectives++;
    return start(g, request, [&](pending &p) {
        p.out = buffer(g, data, static_cast<size_t>(bytes));
        p.in = buffer(g, data, static_cast<size_t>(bytes));
        if (g->rank != root) receive(p, root, slot, 0, static_cast<size_t>(bytes));
        else
            for (int i = 1; i < g->size; i++) send(p, (root + i) % g->size, slot, 0, static_cast<size_t>(bytes));
    });
}

int message(void *state, bool sends, clt_lane lane, void *data, int bytes, int peer, uint32_t tag, clt_request *request) {
    group *g = static_cast<group *>(state);
    const uint64_t slot = message_slot | static_cast<uint64_t>(lane) << 32 | tag;
    return start(g, request, [&](pending &p) {
        std::unique_ptr<UnboundBuffer> &b = sends ? p.out : p.in;
        b = buffer(g, data, static_cast<size_t>(bytes));
        if (sends) send(p, peer, slot, 0, static_cast<size_t>(bytes));
        else receive(p, peer, slot, 0, static_cast<size_t>(bytes));
    });
}

void drop(clt_request *request) {
    delete of(request);
    request->word = 0;
}

int test(clt_request *request, bool *done) {
    if (!request->word) return *done = true, 0;
    pending &p = **of(request);
    const int is = p.state;
    *done = is == pending::DONE;
    if (is == pending::BEGUN) return 0;
    if (is == pending::FAILED) std::snprintf(text, sizeof text, "%s", p.words.c_str());
    else if (p.then) p.then();
    drop(request);
    return is == pending::FAILED;
}

void wait(const clt_request *request, int microseconds) {
    if (request->word) (*of(request))->await(std::chrono::microseconds(microseconds));
}

// Its memory is free once the thread that waits has seen it.
bool cancel(clt_request *request) {
    if (!request->word) return true;
    pending &p = **of(request);
    p.give_up();
    while (p.state == pending::BEGUN) p.await(std::chrono::seconds(1));
    drop(request);
    return true;
}

// ---- leaving ----

// Gloo closes connections without waiting for what is on its way. So ranks that leave together say so first, and who leaves alone waits a little.
void part(group *g) {
    constexpr milliseconds longest(200);
    const auto until = std::chrono::steady_clock::now() + longest;
    char out = 0;
    std::vector<char> in(static_cast<size_t>(g->size));
    std::vector<clt_request> requests(static_cast<size_t>(g->size));
    for (int r = 0; r < g->size; r++)
        if (r != g->rank) start(g, &requests[static_cast<size_t>(r)], [&](pending &p) {
            p.out = buffer(g, &out, 1);
            p.in = buffer(g, &in[static_cast<size_t>(r)], 1);
            receive(p, r, parting_slot, 0, 1);
            send(p, r, parting_slot, 0, 1);
        });
    for (clt_request &request : requests) {
        bool done = false;
        while (!test(&request, &done) && !done && std::chrono::steady_clock::now() < until) wait(&request, 1000);
    }
    for (clt_request &request : requests) cancel(&request);
}

void close_group(void *state, bool orderly) {
    group *g = static_cast<group *>(state);
    guard([&] {
        if (orderly) part(g);
        delete g;
    });
}

const char *words() {
    return text;
}

const clt_mover mover = {CLT_MOVER_ABI, "gloo", true, open_group, close_group, largest, exchange, gather, broadcast, message, test, wait, cancel, words};

} // namespace

extern "C" __attribute__((visibility("default"))) const clt_mover *clt_mover_plugin(void);
const clt_mover *clt_mover_plugin(void) {
    return &mover;
}
