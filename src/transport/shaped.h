// Decorates a connection with the rate and latency of a given link, to emulate clusters on one machine without root. The arithmetic is the
// simulator's (sim/network.h): a slice leaves through the sender's pipe, flows cut-through through the sender's further links and then the
// receiver's, and takes the latency; a message takes the latency only. Each end shapes its own side of the path.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "transport/anchor.h"
#include "transport/delay_line.h"
#include "transport/options.h"
#include "transport/outbox.h"
#include "transport/pipe.h"
#include "transport/shared_link.h"
#include "transport/wrapped.h"

namespace motley::transport {

/// Pipes and links are shared with the other connections of the same network card or uplink. The default shapes nothing.
struct Shape {
  std::shared_ptr<Pipe> up{};           // slices are sent through it one at a time; none: they are sent directly, without latency
  SharedLinks beyond{};                 // further links on the sender's side, such as a group's uplink; needs an `up`
  std::chrono::nanoseconds latency{0};  // one way, of messages and slices that are sent
  SharedLinks in{};                     // links for incoming slices: a group's uplink, the card, the own link
  double peer_bytes_per_second = 0;     // the rate of the peer's `up`, see through(); 0: unknown
};

/// Slices to send wait here, most urgent first; the next one is chosen when the pipe is free. When the chosen and unsent slices exceed one
/// slice more than bandwidth x latency, the peer does not take them: the others stay here, where a more urgent one can still overtake them.
/// An incoming slice waits here, in order, until it has passed our links; only then is the owner asked for a buffer, at the cost of one
/// copy. While any waits, no credit is granted, so slices in flight and slices waiting share one window. close() does not wait for delayed
/// messages: they arrive early.
class Shaped final : public Wrapped, private PipeUser {
 public:
  Shaped(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, Shape shape, const Options& options);

  /// Applies to what is sent and received from now on; slices already in flight keep their shape, and later ones stay behind them.
  void reshape(Shape shape);

  void send(const wire::Message& message) override;
  void send(const BulkMessage& bulk_message) override;
  void hold() override;
  void resume() override;
  void close(const std::string& reason) override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] bool supports_borrowing() const override { return !shape_->up && shape_->in.empty() && inner().supports_borrowing(); }
  [[nodiscard]] Queued queued() const override;

 private:
  using Payload = std::vector<std::byte>;
  struct IncomingSlice {
    std::shared_ptr<const Shape> shape;
    Payload payload;
  };
  struct Waiting {
    wire::Message head;
    Payload payload;
  };

  void send_on();
  void send_directly();
  std::size_t pick_slice() override;
  void through() override;
  void sent(Connection& inner, std::uint64_t ticket) override;

  std::span<std::byte> receive_buffer(Connection& inner, const wire::Message& head, std::size_t bytes) override;
  void received(Connection& inner, const wire::Message& head) override;
  bool accept_in_place(Connection& inner, const wire::Message& head, std::span<const std::byte> payload,
                       const BorrowedMemory& borrow) override;
  void deliver_first();
  void grant_if_none_waits();

  void closed(Connection& inner, const Error& why) override;
  void stop();

  std::shared_ptr<const Shape> shape_;  // a slice in flight keeps the shape with which it was sent
  Options options_;
  bool open_ = true;

  Outbox outbox_;
  std::size_t direct_ = 0;              // slices sent directly and not yet reported by sent(); 0 while any is in chosen_
  std::shared_ptr<const Shape> turn_;   // the shape in whose pipe we wait for our turn or have a slice; null: in none
  std::optional<BulkMessage> in_pipe_;  // the slice in the pipe
  std::deque<std::size_t>
      chosen_;                    // payload bytes of the slices chosen and not yet sent: in the pipe, delayed, or with the inner connection
  std::size_t chosen_bytes_ = 0;  // their sum
  std::size_t most_chosen_bytes_ = 0;
  std::size_t delayed_bytes_ = 0;  // of messages that are delayed
  DelayLine messages_;
  DelayLine slices_;

  std::optional<IncomingSlice>
      incoming_;                 // between the inner connection's receive_buffer() and received(); none: it goes straight to the owner
  std::deque<Waiting> waiting_;  // received and still delayed, in this order
  std::vector<Payload> spare_;   // buffers for reuse
  bool held_ = false;            // by the owner
  DelayLine arrivals_;
  Anchor<PipeUser> anchor_{*this};
};

}  // namespace motley::transport
