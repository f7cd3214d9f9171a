// Parameters, as they come in to a worker: where each slice lands, or where it lies and is read; and what is coded, taken in.
#include <fmt/format.h>

#include <iterator>

#include "codec/codec.h"
#include "run/worker_process.h"
#include "store/pull_shadow.h"

namespace motley::run {

std::span<std::byte> WorkerProcess::room(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (!life_ || !is_ours(from)) return {};
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    from.close(*why);
    return {};
  }
  const auto* pulled = &std::get<wire::Pulled>(head);
  const store::Slice& slice = desk_->layout()[pulled->slice];
  const bool whole = slice.bits(pulled->bits) == plain_bits;
  if (bytes != codec::encoded_bytes(slice.bits(pulled->bits), slice.count)) return {};
  if (pulled->rounded && !whole && !in_halves(*pulled)) return {};
  Life::Landing& landing = life_->landings[&from] = {};
  if (pulled->worker == life_->attached) {
    auto& arrival = life_->arrivals[{pulled->worker, pulled->step}];
    if (!arrival) arrival = std::make_shared<Arrival>(desk_->layout(), make_buffer(desk_->layout().values));
    if (arrival->buffer().borrowed()) return {};  // who lends a model lends all of it
    landing.arrival = arrival;
    if (whole) return arrival->buffer().bytes(slice.offset, slice.count);
    if (desk_->keeps_values()) return arrival->buffer().bytes(slice.offset, slice.count).first(bytes);
  }
  landing.bytes.resize(bytes);
  return landing.bytes;
}

/// A model that lies flat in the server's memory is read there.
bool WorkerProcess::keep(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                         const transport::Loan& loan) {
  const auto* pulled = std::get_if<wire::Pulled>(&head);
  if (pulled == nullptr || !life_ || !is_ours(from) || objection(from, wire::Lane::bulk, head)) return false;  // room() says why
  if (life_->servers.size() != 1 || pulled->worker != life_->attached) return false;
  const store::Slice& slice = desk_->layout()[pulled->slice];
  const std::uint8_t bits = slice.bits(pulled->bits);
  if (bits != plain_bits && !in_halves(*pulled)) return false;
  if (payload.size() != codec::encoded_bytes(bits, slice.count)) return false;
  const float* flat = Buffer::beginning(payload, slice.offset);
  auto& arrival = life_->arrivals[{pulled->worker, pulled->step}];
  if (!arrival) arrival = std::make_shared<Arrival>(desk_->layout(), std::make_shared<Buffer>(flat, desk_->layout().values));
  if (!arrival->buffer().borrowed() || arrival->buffer().floats().data() != flat) return false;
  arrival->buffer().add(loan);
  arrived(*pulled, arrival);
  return true;
}

/// Values that were rounded for us as we asked for it.
bool WorkerProcess::in_halves(const wire::Pulled& pulled) const {
  return pulled.rounded && desk_->halves() && desk_->layout()[pulled.slice].bits(pulled.bits) == half_bits;
}

void WorkerProcess::received(transport::Connection& from, const wire::Message& head) {
  const auto& pulled = std::get<wire::Pulled>(head);
  if (!life_ || !is_ours(from)) return;
  const auto landed = life_->landings.extract(&from);
  if (landed.empty() || !landed.mapped().arrival || pulled.worker != life_->attached) return;
  const std::shared_ptr<Arrival>& arrival = landed.mapped().arrival;
  if (desk_->layout()[pulled.slice].bits(pulled.bits) != plain_bits && !desk_->keeps_values())
    if (const Outcome taken = take_in(pulled, landed.mapped().bytes); !taken.ok())
      return lose(fmt::format("a slice of {} bits cannot be used: {}", pulled.bits, taken.error().message));
  arrived(pulled, arrival);
}

void WorkerProcess::arrived(const wire::Pulled& pulled, const std::shared_ptr<Arrival>& arrival) {
  const std::uint8_t bits = desk_->layout()[pulled.slice].bits(pulled.bits);
  if (bits == plain_bits || !desk_->keeps_values()) {
    arrival->arrived(pulled.slice);
  } else if (pulled.rounded) {
    arrival->arrived(pulled.slice, bits);
  } else {
    const auto before = last_before({pulled.worker, pulled.step});
    if (!before || !before->has(pulled.slice))
      return lose(fmt::format("a slice of {} bits cannot be used: there is nothing that it could be a change of", pulled.bits));
    arrival->arrived(pulled.slice, bits, before);
  }
  if (desk_->local_steps() && life_->computing && life_->computing->order.step < pulled.step) life_->computing->comes(arrival);
  if (const auto on_desk = life_->arrivals.find({pulled.worker, pulled.step}); life_->computing && life_->computing->values == arrival)
    forget_arrivals_before(on_desk);
  tell(protocol::Arrived{pulled});
}

/// What is still to come of this one may be changes of the one before it; when it is whole, nobody needs anything older.
void WorkerProcess::forget_arrivals_before(std::map<std::pair<WorkerId, Step>, std::shared_ptr<Arrival>>::iterator arrival) {
  auto end = arrival;
  if (end != life_->arrivals.begin() && !arrival->second->complete()) --end;
  life_->arrivals.erase(life_->arrivals.begin(), end);
}

/// What came for the step before this one; null: nothing that is still here.
std::shared_ptr<Arrival> WorkerProcess::last_before(const std::pair<WorkerId, Step>& step) const {
  const auto now = life_->arrivals.lower_bound(step);
  if (now == life_->arrivals.begin() || std::prev(now)->first.first != step.first) return nullptr;
  return std::prev(now)->second;
}

/// A change, to be added to what came before it. Slices of one id arrive in order, so that is there.
Outcome WorkerProcess::take_in(const wire::Pulled& pulled, std::span<const std::byte> bytes) {
  const auto now = life_->arrivals.find({pulled.worker, pulled.step});
  if (now == life_->arrivals.end()) return peer_broken("its step is over");
  const auto before = last_before({pulled.worker, pulled.step});
  if (!before) return peer_broken("there is nothing that it could be a change of");
  const store::Slice& slice = desk_->layout()[pulled.slice];
  const auto part = [&](Arrival& arrival) { return arrival.buffer().floats().subspan(slice.offset, slice.count); };
  return store::apply_change(slice, pulled.bits, bytes, part(*before), part(*now->second));
}

}  // namespace motley::run
