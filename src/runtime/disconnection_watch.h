// Stages of a pipeline that cannot reach each other although their processes live: decides when their layout must be assigned anew, and
// when training must be given up.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>

#include "transport/anchor.h"

namespace motley::runtime {

/// Event-loop thread only.
class DisconnectionWatch {
 public:
  explicit DisconnectionWatch(boost::asio::io_context& event_loop) : event_loop_(event_loop) {}

  /// A stage has lost a neighbour. It cannot tell whether the neighbour died, which this process notices as well: `confirm` is called a
  /// moment later and must check whether the layout is still the same.
  void reported(std::function<void()> confirm);
  /// A disconnection is confirmed, or nothing moves between the stages. True: it was too often without progress.
  bool confirmed();
  /// A stage has committed a mini-batch.
  void progressed() { in_a_row_ = 0; }

 private:
  boost::asio::io_context& event_loop_;
  std::uint32_t in_a_row_ = 0;
  transport::Anchor<DisconnectionWatch> anchor_{*this};
};

}  // namespace motley::runtime
