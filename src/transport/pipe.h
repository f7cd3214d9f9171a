// One direction of a network card: so many bytes a second, shared in turns by all the connections that leave through it.
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
  /// The pipe is free: choose a slice, say its bytes. 0: none after all. Chosen this late, the most urgent one goes.
  virtual std::size_t pick_slice() = 0;
  /// Those bytes are through. May destroy the rider.
  virtual void through() = 0;
};

/// Riders take turns, one slice each: first come, first served. A slice occupies the pipe for bytes / bytes_per_second; timers that fire
/// late are made up for, so the rate holds on average.
class Pipe {
 public:
  Pipe(const boost::asio::any_io_executor& executor, double bytes_per_second);
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();

  /// Queues for one turn. Not again before its pick_slice() or through() was called.
  void enter(const Watch<PipeUser>& pipe_user);

  [[nodiscard]] double bytes_per_second() const;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace motley::transport
