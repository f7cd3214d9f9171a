// A connection as slow as a given link, over any other: for clusters tried on one machine, without root. Same arithmetic as the simulator's
// (sim/network.h): a slice leaves through the sender's pipe and flows cut-through through the passages behind it, then through those of
// the receiver, and takes the latency; a message takes the latency alone. Each end shapes what it stands for: its own side of the way.
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

/// Pipes and passages are shared with the other connections of the same network card or uplink. The default shapes nothing.
struct Shape {
  std::shared_ptr<Pipe> up{};           // what slices are sent through, one at a time; none: they go straight through, without latency
  SharedLinks beyond{};                 // what they flow through next, still on our side, as a group's uplink; needs an `up`
  std::chrono::nanoseconds latency{0};  // one way, of what is sent
  SharedLinks in{};                     // what arriving slices flow through: a group's uplink, the card, the own link
  double peer_bytes_per_second = 0;     // the peer's `up`: how long before its tail the head of a slice was here; 0: unknown, see through()
};

/// Slices to send wait here, most urgent first; who goes next is chosen as the pipe gets free. When more than the line holds (bandwidth x
/// latency) and one slice are chosen and not sent, the peer does not take them: the others stay here, where they can still be overtaken.
/// A slice that arrives before it is through our passages waits here too, in order, and only then is the owner asked for room: one copy.
/// While any waits nothing is granted back, so what is under way and what waits are one window together.
/// close() does not wait for the line: messages in it arrive early.
class Shaped final : public Wrapped, private PipeUser {
 public:
  Shaped(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, Shape shape, const Options& options);

  /// From now on. What is under way, both ways, keeps its old way, and what follows stays behind it.
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
  void send_straight();
  std::size_t pick_slice() override;
  void through() override;
  void sent(Connection& inner, std::uint64_t ticket) override;

  std::span<std::byte> receive_buffer(Connection& inner, const wire::Message& head, std::size_t bytes) override;
  void received(Connection& inner, const wire::Message& head) override;
  bool accept_in_place(Connection& inner, const wire::Message& head, std::span<const std::byte> payload,
                       const BorrowedMemory& borrow) override;
  void pass_first();
  void grant_if_none_waits();

  void closed(Connection& inner, const Error& why) override;
  void stop();

  std::shared_ptr<const Shape> shape_;  // who is under way keeps the one it set out with
  Options options_;
  bool open_ = true;

  Outbox outbox_;
  std::size_t straight_ = 0;            // slices that went straight through and are not yet sent; none while some are chosen
  std::shared_ptr<const Shape> turn_;   // in whose pipe we wait for our turn or ride; null: in none
  std::optional<BulkMessage> in_pipe_;  // inside it
  std::deque<std::size_t> chosen_;      // payload bytes of those chosen and not yet sent: riding, in the line, with the inner connection
  std::size_t chosen_bytes_ = 0;        // their sum
  std::size_t most_chosen_bytes_ = 0;
  std::size_t delayed_bytes_ = 0;  // of messages in the line
  DelayLine messages_;
  DelayLine slices_;

  std::optional<IncomingSlice>
      incoming_;                 // between the inner connection's receive_buffer() and received(); none: it goes straight to the owner
  std::deque<Waiting> waiting_;  // arrived, in this order, and not yet through
  std::vector<Payload> spare_;   // memory of some that are through
  bool held_ = false;            // by the owner
  DelayLine arrivals_;
  Anchor<PipeUser> anchor_{*this};
};

}  // namespace motley::transport
