// See gloo.h. Only those headers of Gloo are used that stand alone in what distributions install.
#include "comm/plugins/gloo.h"

#include <cstdio>
#include <deque>
#include <exception>
#include <stdexcept>
#include <memory>
#include <vector>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

namespace {

using std::chrono::milliseconds;

// A call failed: what it said is in clt_error_detail().
class failure final : public std::exception {
  public:
    explicit failure(clt_status status) : status_(status) {}
    const char *what() const noexcept override { return "a message failed"; }
    clt_status status() const noexcept { return status_; }

  private:
    clt_status status_;
};

// The messages of a buffer that are under way, oldest first: Gloo waits for as many as it began.
class buffer final : public gloo::transport::UnboundBuffer {
  public:
    buffer(const clt_gloo_calls *calls, void *data, size_t bytes) : UnboundBuffer(data, bytes), calls_(calls) {}

    ~buffer() override {
        for (void *message : sends_) calls_->forget(calls_->context, message);
        for (void *message : receives_) calls_->forget(calls_->context, message);
    }

    bool waitRecv(int *rank, milliseconds) override { return wait(receives_, rank); }
    bool waitSend(int *rank, milliseconds) override { return wait(sends_, rank); }

    // For other threads than the one that waits, of which there are none.
    void abortWaitRecv() override {}
    void abortWaitSend() override {}

    void send(int to, uint64_t slot, size_t offset, size_t bytes) override {
        const span s = check(offset, bytes);
        begun(sends_, calls_->send(calls_->context, to, slot, s.data, s.bytes));
    }

    void recv(int from, uint64_t slot, size_t offset, size_t bytes) override {
        const span s = check(offset, bytes);
        begun(receives_, calls_->receive(calls_->context, from, slot, s.data, s.bytes));
    }

    void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override {
        if (from.size() != 1) throw std::invalid_argument("receiving from any of several ranks is not offered");
        recv(from[0], slot, offset, bytes);
    }

  private:
    struct span {
        char *data;
        size_t bytes;
    };

    // Messages of nothing come with offsets past the end.
    span check(size_t offset, size_t bytes) const {
        if (bytes == 0) return {nullptr, 0};
        if (offset > size || (bytes != kUnspecifiedByteCount && bytes > size - offset))
            throw std::out_of_range("a message lies outside its buffer");
        return {static_cast<char *>(ptr) + offset, bytes == kUnspecifiedByteCount ? size - offset : bytes};
    }

    void begun(std::deque<void *> &list, void *message) {
        if (!message) throw failure(CLT_E_NETWORK);
        list.push_back(message);
    }

    bool wait(std::deque<void *> &list, int *rank) {
        if (list.empty()) throw std::logic_error("waiting for a message that was not begun");
        if (rank) throw std::invalid_argument("who sent is not told");
        void *message = list.front();
        list.pop_front();
        const clt_status status = calls_->wait(calls_->context, message);
        if (status < 0) throw failure(status);
        return true;
    }

    const clt_gloo_calls *const calls_;
    std::deque<void *> sends_, receives_;
};

// Shows that there is a connection, which algorithms ask; what goes through pairs is for old-style algorithms, which are not offered.
class pair final : public gloo::transport::Pair {
  public:
    const gloo::transport::Address &address() const override { throw refusal(); }
    void connect(const std::vector<char> &) override { throw refusal(); }
    void close() override {}
    void setSync(bool, bool) override { throw refusal(); }
    std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void *, size_t) override { throw refusal(); }
    std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void *, size_t) override { throw refusal(); }
    void send(gloo::transport::UnboundBuffer *, uint64_t, size_t, size_t) override { throw refusal(); }
    void recv(gloo::transport::UnboundBuffer *, uint64_t, size_t, size_t) override { throw refusal(); }

  private:
    static std::logic_error refusal() { return std::logic_error("old-style algorithms are not offered"); }
};

class transport_context final : public gloo::transport::Context {
  public:
    transport_context(int r, int n, const clt_gloo_calls *calls) : Context(r, n), calls_(calls) {
        pairs_.resize(static_cast<size_t>(n));
        for (int i = 0; i < n; i++)
            if (i != r) createPair(i);
    }

    std::unique_ptr<gloo::transport::Pair> &createPair(int i) override {
        auto &place = pairs_.at(static_cast<size_t>(i));
        place.reset(new pair);
        return place;
    }

    std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void *data, size_t bytes) override {
        return std::unique_ptr<gloo::transport::UnboundBuffer>(new buffer(calls_, data, bytes));
    }

  private:
    const clt_gloo_calls *const calls_;
};

class context final : public gloo::Context {
  public:
    context(int r, int n, const clt_gloo_calls *calls) : Context(r, n) {
        transportContext_ = std::make_shared<transport_context>(r, n, calls);
    }
};

// Runs what may throw.
template <typename F>
clt_status guard(char *words, F f) noexcept {
    try {
        f();
        return CLT_OK;
    } catch (const failure &e) {
        return e.status();
    } catch (const std::bad_alloc &) {
        std::snprintf(words, CLT_GLOO_WORDS, "out of memory");
        return CLT_E_NO_MEMORY;
    } catch (const std::exception &e) {
        std::snprintf(words, CLT_GLOO_WORDS, "%s", e.what());
    } catch (...) {
        std::snprintf(words, CLT_GLOO_WORDS, "an exception of unknown type");
    }
    return CLT_E_SYSTEM;
}

// Gloo's options want a type, of which they use the size.
template <typename T>
void all_reduce(const std::shared_ptr<gloo::Context> &c, const clt_gloo_calls *calls, void *data, size_t count,
                gloo::AllreduceOptions::Algorithm algorithm) {
    gloo::AllreduceOptions options(c);
    options.setAlgorithm(algorithm);
    options.setOutput(static_cast<T *>(data), count);
    options.setReduceFunction([calls](void *into, const void *a, const void *b, size_t n) {
        calls->reduce(calls->context, into, a, b, n);
    });
    gloo::allreduce(options);
}

template <typename T>
void all_gather(const std::shared_ptr<gloo::Context> &c, void *data, const std::vector<size_t> &counts) {
    gloo::AllgathervOptions options(c);
    options.setOutput(static_cast<T *>(data), counts);
    gloo::allgatherv(options);
}

} // namespace

struct clt_gloo {
    const clt_gloo_calls *calls;
    std::shared_ptr<gloo::Context> context;
};

namespace {

clt_gloo *create(int rank, int size, const clt_gloo_calls *calls) {
    clt_gloo *gloo = nullptr;
    char words[CLT_GLOO_WORDS];
    guard(words, [&] {
        std::unique_ptr<clt_gloo> made(new clt_gloo{calls, std::make_shared<::context>(rank, size, calls)});
        gloo = made.release();
    });
    return gloo;
}

void destroy(clt_gloo *gloo) {
    delete gloo;
}

clt_status all_reduce(clt_gloo *gloo, void *data, size_t count, size_t element_bytes, clt_gloo_algorithm algorithm, char words[CLT_GLOO_WORDS]) {
    const auto kind = algorithm == CLT_GLOO_RING ? gloo::AllreduceOptions::Algorithm::RING
                                                 : gloo::AllreduceOptions::Algorithm::BCUBE;
    return guard(words, [&] {
        if (element_bytes == 1) all_reduce<uint8_t>(gloo->context, gloo->calls, data, count, kind);
        else if (element_bytes == 2) all_reduce<uint16_t>(gloo->context, gloo->calls, data, count, kind);
        else if (element_bytes == 4) all_reduce<uint32_t>(gloo->context, gloo->calls, data, count, kind);
        else all_reduce<uint64_t>(gloo->context, gloo->calls, data, count, kind);
    });
}

clt_status all_gather(clt_gloo *gloo, void *data, const size_t *counts, size_t element_bytes, char words[CLT_GLOO_WORDS]) {
    return guard(words, [&] {
        const std::vector<size_t> parts(counts, counts + gloo->context->size);
        if (element_bytes == 1) all_gather<uint8_t>(gloo->context, data, parts);
        else if (element_bytes == 2) all_gather<uint16_t>(gloo->context, data, parts);
        else if (element_bytes == 4) all_gather<uint32_t>(gloo->context, data, parts);
        else all_gather<uint64_t>(gloo->context, data, parts);
    });
}

clt_status broadcast(clt_gloo *gloo, void *data, size_t bytes, int root, char words[CLT_GLOO_WORDS]) {
    return guard(words, [&] {
        gloo::BroadcastOptions options(gloo->context);
        options.setOutput(static_cast<uint8_t *>(data), bytes);
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

clt_status barrier(clt_gloo *gloo, char words[CLT_GLOO_WORDS]) {
    return guard(words, [&] {
        gloo::BarrierOptions options(gloo->context);
        gloo::barrier(options);
    });
}

const clt_gloo_functions functions = {CLT_GLOO_ABI, create, destroy, all_reduce, all_gather, broadcast, barrier};

} // namespace

extern "C" __attribute__((visibility("default"))) const clt_gloo_functions *clt_gloo_plugin(void);
const clt_gloo_functions *clt_gloo_plugin(void) {
    return &functions;
}
