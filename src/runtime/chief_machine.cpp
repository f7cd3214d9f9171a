#include "runtime/chief_machine.h"

#include <algorithm>
#include <utility>

namespace motley::runtime {

ChiefMachine::ChiefMachine(boost::asio::io_context& event_loop, protocol::Chief chief, Duration heartbeat,
                           const protocol::ChiefOptions& options, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      pauses_(heartbeat, std::min(options.silence_deadline, options.step_limit)),
      chief_(std::move(chief)),
      alarm_(event_loop, clock_, [this] { tell(protocol::Tick{}); }) {
  if (callbacks_.record) recorder_.emplace(callbacks_.record);
}

void ChiefMachine::tell(const protocol::ChiefEvent& event) {
  if (stopped_) return;
  const Instant now = clock_.now();
  if (const Duration missed = pauses_.run(now); missed > Duration{0}) {
    callbacks_.paused(missed);
    step(now, protocol::DriverPaused{missed});
  }
  step(now, event);
}

void ChiefMachine::step(Instant now, const protocol::ChiefEvent& event) {
  if (stopped_) return;
  ++events_;
  protocol::ChiefActions actions;
  chief_.step(now, event, actions);
  if (recorder_) recorder_->stepped(now, event, actions);
  for (const auto& action : actions) callbacks_.carry_out(action);
}

void ChiefMachine::stop() {
  if (std::exchange(stopped_, true)) return;
  if (recorder_) recorder_->closed(clock_.now());
}

}  // namespace motley::runtime
