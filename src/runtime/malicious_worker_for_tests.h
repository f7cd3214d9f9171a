// For tests: a peer that follows the protocol of a worker, but pushes values of the test's choice and reports them as finite.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "transport/connect.h"
#include "transport/shared_arena.h"
#include "transport/transport.h"

namespace motley::runtime {

class MaliciousWorker final : private transport::ConnectionCallbacks {
 public:
  /// Sets the slice's values before they are encoded.
  using Numbers = std::function<void(const wire::Order& order, SliceId slice, std::vector<float>& values)>;
  struct Options {
    std::string node;
    std::uint32_t node_index = wire::no_node_index;
    std::vector<std::size_t> counts{};  // values, by slice
    std::function<std::uint8_t(SliceId slice, std::uint8_t ordered)> bits = [](SliceId, std::uint8_t ordered) { return ordered; };
    bool supports_borrowing = false;  // its pushes are read in place, if its connection can
  };

  MaliciousWorker(boost::asio::io_context& event_loop, const transport::Address& chief, const transport::Options& transport,
                  Options options, Numbers numbers)
      : options_(std::move(options)), numbers_(std::move(numbers)), alive_(std::make_shared<bool>(true)) {
    transport::connect(event_loop, chief, transport, [this, alive = alive_](auto connection) {
      if (!*alive || !connection.ok()) return;
      chief_ = std::move(*connection);
      chief_->start(*this);
      chief_->send(wire::JoinRequest{options_.node});
    });
  }
  ~MaliciousWorker() override { *alive_ = false; }
  MaliciousWorker(const MaliciousWorker&) = delete;
  MaliciousWorker& operator=(const MaliciousWorker&) = delete;

  std::optional<WorkerId> id;
  bool stopped = false;      // the chief sent Stop
  bool borrowed = false;     // a slice was offered in shared memory
  std::string ended;         // why its connection was closed
  std::uint64_t pushed = 0;  // contributions

 private:
  void on_message(transport::Connection&, wire::Message message) override {
    if (std::holds_alternative<wire::JobDescription>(message)) {
      wire::Hello hello{options_.node, 1};
      hello.node_index = options_.node_index;
      chief_->send(hello);
    } else if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
      id = welcome->worker;
      chief_->send(wire::Attach{*id, welcome->key});
    } else if (const auto* order = std::get_if<wire::Order>(&message)) {
      contribute(*order);
    } else if (std::holds_alternative<wire::Stop>(message)) {
      stopped = true;
      chief_->close("done");
    }
  }
  std::span<std::byte> receive_buffer(transport::Connection&, const wire::Message&, std::size_t bytes) override {
    arrived_.resize(bytes);
    return arrived_;
  }
  void received(transport::Connection&, const wire::Message&) override {}
  void sent(transport::Connection&, std::uint64_t ticket) override { sending_.erase(ticket); }
  void closed(transport::Connection&, const Error& why) override { ended = why.message; }

  void contribute(const wire::Order& order) {
    for (std::uint32_t s = 0; s < options_.counts.size(); ++s) push(order, SliceId{s}, options_.counts[s]);
    ++pushed;
    const auto samples = static_cast<std::uint32_t>(order.lease.size());
    chief_->send(wire::Contributed{.worker = order.worker,
                                   .step = order.step,
                                   .base = order.version,
                                   .report = {.samples = samples,
                                              .local_steps = order.local_steps,
                                              .loss_sum = static_cast<double>(samples),
                                              .squared_norm = 1,
                                              .compute = from_seconds(0.001)}});
  }
  void push(const wire::Order& order, SliceId slice, std::size_t count) {
    std::vector<float> values(count, 0.001F);
    numbers_(order, slice, values);
    const std::uint8_t bits = options_.bits(slice, order.push_bits);
    auto bytes = std::make_shared<std::vector<std::byte>>();
    codec::make(bits).value()->encode(values, *bytes);
    std::span<const std::byte> payload = *bytes;
    if (options_.supports_borrowing && chief_->supports_borrowing()) {
      auto* place = static_cast<std::byte*>(transport::shared_arena().take(std::max<std::size_t>(bytes->size(), 1)));
      if (place != nullptr) {
        std::copy(bytes->begin(), bytes->end(), place);
        payload = {place, bytes->size()};
        borrowed = true;
      }
    }
    sending_[next_ticket_] = bytes;
    chief_->send(transport::BulkMessage{wire::Push{order.worker, order.step, slice, order.push_bits}, payload, slice.value, next_ticket_++,
                                        options_.supports_borrowing});
  }

  Options options_;
  Numbers numbers_;
  std::shared_ptr<bool> alive_;
  std::vector<std::byte> arrived_;
  std::map<std::uint64_t, std::shared_ptr<std::vector<std::byte>>> sending_;
  std::uint64_t next_ticket_ = 0;
  std::unique_ptr<transport::Connection> chief_;  // last: it reads `sending_`
};

}  // namespace motley::runtime
