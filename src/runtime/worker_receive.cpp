// Parameters, as they come in to a worker: where each slice lands, or where it lies and is read; and what is coded, taken in.
#include <fmt/format.h>

#include <iterator>

#include "codec/codec.h"
#include "runtime/worker_process.h"
#include "store/pull_shadow.h"

namespace motley::runtime {

std::span<std::byte> WorkerProcess::receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (!incarnation_ || !is_ours(from)) return {};
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    from.close(*why);
    return {};
  }
  const auto* pulled = &std::get<wire::Pulled>(head);
  const store::Slice& slice = step_executor_->layout()[pulled->slice];
  const bool whole = slice.bits(pulled->bits) == fp32_bits;
  if (bytes != codec::encoded_bytes(slice.bits(pulled->bits), slice.count)) return {};
  if (pulled->rounded && !whole && !sent_as_bf16(*pulled)) return {};
  Incarnation::ReceiveBuffer& landing_buffer = incarnation_->landing_buffers[&from] = {};
  if (pulled->worker == incarnation_->attached) {
    auto& incoming = incarnation_->incoming_parameters[{pulled->worker, pulled->step}];
    if (!incoming) incoming = std::make_shared<IncomingParameters>(step_executor_->layout(), make_buffer(step_executor_->layout().values));
    if (incoming->buffer().borrowed()) return {};  // who lends a model lends all of it
    landing_buffer.incoming = incoming;
    if (whole) return incoming->buffer().bytes(slice.offset, slice.count);
    if (step_executor_->keeps_values()) return incoming->buffer().bytes(slice.offset, slice.count).first(bytes);
  }
  landing_buffer.bytes.resize(bytes);
  return landing_buffer.bytes;
}

/// A model that lies flat in the server's memory is read there.
bool WorkerProcess::accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                                    const transport::BorrowedMemory& borrow) {
  const auto* pulled = std::get_if<wire::Pulled>(&head);
  if (pulled == nullptr || !incarnation_ || !is_ours(from) || objection(from, wire::Lane::bulk, head))
    return false;  // receive_buffer() says why
  if (incarnation_->servers.size() != 1 || pulled->worker != incarnation_->attached) return false;
  const store::Slice& slice = step_executor_->layout()[pulled->slice];
  const std::uint8_t bits = slice.bits(pulled->bits);
  if (bits != fp32_bits && !sent_as_bf16(*pulled)) return false;
  if (payload.size() != codec::encoded_bytes(bits, slice.count)) return false;
  const float* flat = Buffer::flat_begin(payload, slice.offset);
  auto& incoming = incarnation_->incoming_parameters[{pulled->worker, pulled->step}];
  if (!incoming)
    incoming =
        std::make_shared<IncomingParameters>(step_executor_->layout(), std::make_shared<Buffer>(flat, step_executor_->layout().values));
  if (!incoming->buffer().borrowed() || incoming->buffer().floats().data() != flat) return false;
  incoming->buffer().add(borrow);
  arrived(*pulled, incoming);
  return true;
}

/// Values that were rounded for us as we asked for it.
bool WorkerProcess::sent_as_bf16(const wire::Pulled& pulled) const {
  return pulled.rounded && step_executor_->bf16_transfer() && step_executor_->layout()[pulled.slice].bits(pulled.bits) == bf16_bits;
}

void WorkerProcess::received(transport::Connection& from, const wire::Message& head) {
  const auto& pulled = std::get<wire::Pulled>(head);
  if (!incarnation_ || !is_ours(from)) return;
  const auto arrived_slices = incarnation_->landing_buffers.extract(&from);
  if (arrived_slices.empty() || !arrived_slices.mapped().incoming || pulled.worker != incarnation_->attached) return;
  const std::shared_ptr<IncomingParameters>& incoming = arrived_slices.mapped().incoming;
  if (step_executor_->layout()[pulled.slice].bits(pulled.bits) != fp32_bits && !step_executor_->keeps_values())
    if (const Outcome taken = take_in(pulled, arrived_slices.mapped().bytes); !taken.ok())
      return lose(fmt::format("a slice of {} bits cannot be used: {}", pulled.bits, taken.error().message));
  arrived(pulled, incoming);
}

void WorkerProcess::arrived(const wire::Pulled& pulled, const std::shared_ptr<IncomingParameters>& incoming) {
  const std::uint8_t bits = step_executor_->layout()[pulled.slice].bits(pulled.bits);
  if (bits == fp32_bits || !step_executor_->keeps_values()) {
    incoming->arrived(pulled.slice);
  } else if (pulled.rounded) {
    incoming->arrived(pulled.slice, bits);
  } else {
    const auto before = last_before({pulled.worker, pulled.step});
    if (!before || !before->has(pulled.slice))
      return lose(fmt::format("a slice of {} bits cannot be used: there is nothing that it could be a change of", pulled.bits));
    incoming->arrived(pulled.slice, bits, before);
  }
  if (step_executor_->local_steps() && incarnation_->computing && incarnation_->computing->order.step < pulled.step)
    incarnation_->computing->comes(incoming);
  if (const auto on_step_executor = incarnation_->incoming_parameters.find({pulled.worker, pulled.step});
      incarnation_->computing && incarnation_->computing->values == incoming)
    forget_incoming_before(on_step_executor);
  tell(protocol::Arrived{pulled});
}

/// What is still to come of this one may be changes of the one before it; when it is whole, nobody needs anything older.
void WorkerProcess::forget_incoming_before(std::map<std::pair<WorkerId, Step>, std::shared_ptr<IncomingParameters>>::iterator incoming) {
  auto end = incoming;
  if (end != incarnation_->incoming_parameters.begin() && !incoming->second->complete()) --end;
  incarnation_->incoming_parameters.erase(incarnation_->incoming_parameters.begin(), end);
}

/// What came for the step before this one; null: nothing that is still here.
std::shared_ptr<IncomingParameters> WorkerProcess::last_before(const std::pair<WorkerId, Step>& step) const {
  const auto now = incarnation_->incoming_parameters.lower_bound(step);
  if (now == incarnation_->incoming_parameters.begin() || std::prev(now)->first.first != step.first) return nullptr;
  return std::prev(now)->second;
}

/// A change, to be added to what came before it. Slices of one id arrive in order, so that is there.
Outcome WorkerProcess::take_in(const wire::Pulled& pulled, std::span<const std::byte> bytes) {
  const auto now = incarnation_->incoming_parameters.find({pulled.worker, pulled.step});
  if (now == incarnation_->incoming_parameters.end()) return peer_broken("its step is over");
  const auto before = last_before({pulled.worker, pulled.step});
  if (!before) return peer_broken("there is nothing that it could be a change of");
  const store::Slice& slice = step_executor_->layout()[pulled.slice];
  const auto part = [&](IncomingParameters& incoming) { return incoming.buffer().floats().subspan(slice.offset, slice.count); };
  return store::apply_change(slice, pulled.bits, bytes, part(*before), part(*now->second));
}

}  // namespace motley::runtime
