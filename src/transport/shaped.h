// A connection as slow as a given link, over any other: for clusters tried on one machine, without root. Same numbers as the simulator's:
// slices take bytes / bandwidth and then the latency, messages the latency alone. Shapes what is sent; wrap both ends for both directions.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "transport/anchor.h"
#include "transport/delay_line.h"
#include "transport/options.h"
#include "transport/outbox.h"
#include "transport/pipe.h"
#include "transport/wrapped.h"

namespace motley::transport {

struct Shape {
  std::shared_ptr<Pipe> up{};           // what it is sent through; shared with the other connections of the same network card
  std::chrono::nanoseconds latency{0};  // one way
};

/// Slices wait here, most urgent first; who goes next is chosen as the pipe gets free. When more than the line holds (bandwidth x latency)
/// and one slice are chosen and not sent, the peer does not take them: the others stay here, where they can still be overtaken.
/// close() does not wait for the line: messages in it arrive early.
class Shaped final : public Wrapped, private Rider {
 public:
  Shaped(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, Shape shape, const Options& options);

  void send(const wire::Message& message) override;
  void send(const Parcel& parcel) override;
  void close(const std::string& reason) override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] Queued queued() const override;

 private:
  std::size_t board() override;
  void through() override;
  void sent(Connection& inner, std::uint64_t ticket) override;
  void closed(Connection& inner, const Error& why) override;
  void enter_pipe();
  void stop();

  Shape shape_;
  Options options_;
  bool open_ = true;
  Outbox outbox_;
  std::optional<Parcel> riding_;    // inside the pipe
  bool in_turn_ = false;            // for the pipe, or inside it
  std::deque<std::size_t> chosen_;  // payload bytes of those chosen and not yet sent: riding, in the line, with the inner connection
  std::size_t chosen_bytes_ = 0;    // their sum
  std::size_t most_chosen_bytes_;
  std::size_t delayed_bytes_ = 0;  // of messages in the line
  DelayLine messages_;
  DelayLine slices_;
  Anchor<Rider> anchor_{*this};
};

}  // namespace motley::transport
