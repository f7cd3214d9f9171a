// A stage's process and its neighbours: how they find each other, and how what one puts out gets to the other.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codec/magnitude.h"
#include "run/stage_process.h"
#include "transport/connect.h"

namespace motley::run {
namespace {

constexpr std::uint64_t most_reserved = std::uint64_t{1} << 26U;  // values, before they come

}  // namespace

/// As the link between the two nodes is described, where this one is emulated.
void StageProcess::shape(transport::Shaped& connection, std::uint32_t to_stage) const {
  if (!kit_->emulated) return;
  const plan::Between& link = kit_->problem.links[life_->cut[life_->laid.stage].device][life_->cut[to_stage].device];
  connection.reshape({.up = std::make_shared<transport::Pipe>(pump_.get_executor(), link.bytes_per_second),
                      .beyond = {},
                      .latency = from_seconds(link.latency_s),
                      .in = {},
                      .peer_bytes_per_second = 0});
}

void StageProcess::couple() {
  const auto address = transport::parse_address(life_->laid.next);
  if (!address) return part(address.error().message);
  transport::Options options = options_.transport;
  options.job = kit_->job;
  transport::connect(pump_, *address, options, [this, alive = alive_, life = lives_](auto connection) {
    if (!*alive || ended_ || !life_ || life != lives_) return;
    if (!connection) return part(connection.error().message);
    auto held = std::make_unique<transport::Shaped>(std::move(*connection), pump_.get_executor(), transport::Shape{}, options_.transport);
    shape(*held, life_->laid.stage + 1);
    held->start(*this);
    held->send(wire::Couple{life_->laid.generation, life_->laid.stage, life_->laid.next_key});
    transport::Connection* name = held.get();
    neighbours_[name] = {std::move(held), false, std::nullopt, clock_.now()};
  });
}

void StageProcess::coupled(transport::Connection& from, const wire::Couple& couple) {
  const auto found = neighbours_.find(&from);
  if (found == neighbours_.end()) return;
  found->second.said = couple;
  if (!life_ || couple.generation != life_->laid.generation) return;  // of a generation that is over, or is still to come
  if (!found->second.came) {
    life_->after = &from;  // it is laid out: what we put out is taken
    return begin_when_all_is_here();
  }
  take_before(*found->second.connection);
  begin_when_all_is_here();
}

void StageProcess::take_before(transport::Shaped& connection) {
  life_->before = &connection;
  shape(connection, life_->laid.stage - 1);
  connection.send(wire::Couple{life_->laid.generation, life_->laid.stage, life_->laid.before_key});
}

void StageProcess::ship(std::uint64_t micro, bool back) {
  Life& life = *life_;
  transport::Connection* to = back ? life.before : life.after;
  auto& made = back ? life.returning : life.outgoing;
  const auto found = made.find(micro);
  check(found != made.end(), "what is shipped was computed");
  auto held = std::make_shared<const Activation>(std::move(found->second));
  made.erase(found);
  if (!back) life.shipped[micro] = held->values.size();
  if (to == nullptr) return;
  const std::size_t slices = kit_->slices;
  const std::size_t largest = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const std::size_t piece = std::clamp<std::size_t>((held->values.size() + slices - 1) / slices, 1, largest);
  for (std::size_t at = 0; at < held->values.size(); at += piece) {
    const auto run = std::span(held->values).subspan(at, std::min(piece, held->values.size() - at));
    leaving_[to][next_ticket_] = held;
    to->send(transport::Parcel{wire::Passed{life.laid.generation, micro, back, at, held->shape}, std::as_bytes(run),
                               static_cast<std::uint32_t>(micro), next_ticket_++});
  }
}

/// What has come so far, in order; the machine passes over what it has heard of. (Some came before it was there.)
void StageProcess::tell_of_what_is_here() {
  std::vector<protocol::StageEvent> events;
  for (const auto& [micro, coming] : life_->inputs)
    if (coming.missing == 0) events.emplace_back(protocol::InputHere{micro});
  for (const auto& [micro, coming] : life_->gradients)
    if (coming.missing == 0) events.emplace_back(protocol::GradientHere{micro});
  const std::uint64_t life = lives_;
  for (const protocol::StageEvent& event : events)
    if (life == lives_) tell(event);
}

std::span<std::byte> StageProcess::room(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (ended_) return {};
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    expel(from, *why);
    return {};
  }
  Landing& landing = landing_[&from];
  landing = {};
  if (bytes % sizeof(float) != 0) return {};
  const std::size_t count = bytes / sizeof(float);
  const auto* slice = std::get_if<wire::StageSlice>(&head);
  const auto* passed = std::get_if<wire::Passed>(&head);
  if (!life_ || (slice != nullptr ? slice->generation : passed->generation) != life_->laid.generation) {
    landing.waste.resize(bytes);
    return landing.waste;
  }
  const auto land = [&](std::vector<float>& all, std::uint64_t offset, std::shared_ptr<void> keeps) {
    landing.keeps = std::move(keeps);
    landing.values = std::span(all).subspan(offset, count);
    return std::as_writable_bytes(landing.values);
  };
  if (slice != nullptr) {
    store::StagePart& part = *life_->part;
    std::vector<float>& all = slice->holding == wire::Holding::values  ? part.values
                              : slice->holding == wire::Holding::first ? part.first
                                                                       : part.second;
    if (slice->offset > all.size() || count > all.size() - slice->offset) return {};
    return land(all, slice->offset, life_->part);
  }
  auto& coming = (passed->back ? life_->gradients : life_->inputs)[passed->micro];
  if (!coming.activation) {
    coming.activation = std::make_shared<Activation>();
    coming.activation->shape = passed->shape;
    coming.missing = wire::values_of(passed->shape);
    coming.activation->values.reserve(std::min(coming.missing, most_reserved));
  }
  if (count > coming.missing) return {};
  coming.activation->values.resize(passed->offset + count);  // as much as really comes
  return land(coming.activation->values, passed->offset, coming.activation);
}

void StageProcess::received(transport::Connection& from, const wire::Message& head) {
  const Landing landing = std::exchange(landing_[&from], {});
  if (!life_ || !landing.keeps) return;
  if (const auto* slice = std::get_if<wire::StageSlice>(&head)) {
    if (landing.keeps != life_->part) return;  // meant for what we were before
    life_->received[static_cast<std::size_t>(slice->holding)] += landing.values.size();
    life_->missing -= landing.values.size();
    return begin_when_all_is_here();
  }
  const auto& passed = std::get<wire::Passed>(head);
  auto& coming = passed.back ? life_->gradients : life_->inputs;
  const auto found = coming.find(passed.micro);
  if (passed.generation != life_->laid.generation || found == coming.end() || landing.keeps != found->second.activation) return;
  life_->finite = life_->finite && codec::all_finite(landing.values);  // the conductor hears of it with the next mini-batch
  found->second.missing -= landing.values.size();
  if (found->second.missing > 0) return;
  if (passed.back) {
    ++life_->next_gradient;
    life_->shipped.erase(passed.micro);
    tell(protocol::GradientHere{passed.micro});
  } else {
    ++life_->next_input;
    tell(protocol::InputHere{passed.micro});
  }
}

}  // namespace motley::run
