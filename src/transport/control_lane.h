// The control lane on a stream: reads and writes frames in order; its Owner acts on them. Lives as long as its coroutines; after detach()
// the owner is not called again.
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
    virtual void control_received(ControlFrame frame) = 0;
    /// The stream ended, failed or carried invalid bytes. The lane calls nothing more.
    virtual void control_lost(const Error& why) = 0;
  };

  ControlLane(Stream stream, Owner& owner);

  void start_reading();
  void send(const wire::Message& message);
  /// Credits are summed and sent as one frame whenever the lane writes.
  void grant(std::uint64_t bytes);
  /// Sends the reason after all queued messages, then ends this direction of the stream.
  void finish(const std::string& reason);
  /// Closes the stream; the owner is not called again.
  void detach();

  [[nodiscard]] std::size_t queued_bytes() const { return queued_.size() + writing_.size() - written_; }

 private:
  asio::awaitable<void> read(std::shared_ptr<ControlLane> self);
  asio::awaitable<bool> read_more();
  asio::awaitable<void> write(std::shared_ptr<ControlLane> self);
  asio::awaitable<bool> write_out();
  bool handle_frames();
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
