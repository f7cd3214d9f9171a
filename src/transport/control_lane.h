// The control lane on a stream: frames in, frames out, in order. Knows the bytes, not what they mean; its Owner decides.
// Lives as long as its coroutines; detach() silences it for good.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "transport/control_frame.h"
#include "transport/stream.h"

namespace motley::transport {

class ControlLane : public std::enable_shared_from_this<ControlLane> {
 public:
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    virtual void control_received(ControlFrame reported) = 0;
    /// The stream ended, failed or was garbled. Nothing more comes from this lane.
    virtual void control_lost(const Error& why) = 0;
  };

  ControlLane(Stream stream, Owner& owner);

  void start_reading();
  void send(const wire::Message& message);
  /// Owed credits are gathered and go as one frame whenever the lane writes.
  void grant(std::uint64_t bytes);
  /// After all that was sent: the reason, then the end of this direction.
  void finish(const std::string& reason);
  /// Closes the stream; the owner is not called again.
  void detach();

  [[nodiscard]] std::size_t queued_bytes() const { return queued_.size() + writing_.size() - written_; }

 private:
  asio::awaitable<void> read(std::shared_ptr<ControlLane> self);
  asio::awaitable<bool> read_more();
  asio::awaitable<void> write(std::shared_ptr<ControlLane> self);
  asio::awaitable<bool> write_out();
  bool say_all_read();
  bool take_queued();
  void wake_writer();
  void lose(const Error& why);

  Stream stream_;
  Owner* owner_;  // null once detached

  wire::Bytes input_;  // read and not yet whole frames: never more than one frame and one read
  std::size_t input_used_ = 0;

  wire::Bytes queued_;   // frames for the next round of writing
  wire::Bytes writing_;  // the frames of this round
  std::size_t written_ = 0;
  std::uint64_t owed_credit_ = 0;
  bool writer_runs_ = false;
  bool finishing_ = false;
};

}  // namespace motley::transport
