// One direction of a network card: a rate in bytes per second, shared in turns by all connections that send through it.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>

#include "transport/anchor.h"

namespace motley::transport {

/// Takes slices through a Pipe.
class PipeUser {
 public:
  PipeUser() = default;
  PipeUser(const PipeUser&) = delete;
  PipeUser& operator=(const PipeUser&) = delete;
  virtual ~PipeUser() = default;
  /// The pipe is free: choose a slice and return its bytes; 0 for none. The choice is made this late so that the most urgent slice goes.
  virtual std::size_t pick_slice() = 0;
  /// These bytes have left the pipe. May destroy the user.
  virtual void through() = 0;
};

/// Users take turns in order of arrival, one slice each. A slice occupies the pipe for bytes / bytes_per_second; late timers are
/// compensated, so that the rate holds on average.
class Pipe {
 public:
  Pipe(const boost::asio::any_io_executor& executor, double bytes_per_second);
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();

  /// Queues for one turn. Must not be called again before the user's pick_slice() or through().
  void enter(const Watch<PipeUser>& pipe_user);

  [[nodiscard]] double bytes_per_second() const;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace motley::transport
