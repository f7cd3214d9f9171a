#include "runtime/state_sender.h"

#include "runtime/state_transfer.h"

namespace motley::runtime {

void StateSender::send(const std::shared_ptr<const Exported>& state) {
  waiting_.push_back(state);
  if (waiting_.size() == 1) send_first();
}

void StateSender::sent() {
  if (chief_.sending() || waiting_.empty()) return;
  waiting_.pop_front();
  if (!waiting_.empty()) send_first();
}

void StateSender::send_first() {
  const std::shared_ptr<const Exported> state = waiting_.front();
  send_state(layout_, server_, state->version, state->values->floats(), state->moments ? &*state->moments : nullptr,
             [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
               chief_.send_payload({.head = head, .payload = payload, .priority = head.slice.value}, state);
             });
}

}  // namespace motley::runtime
