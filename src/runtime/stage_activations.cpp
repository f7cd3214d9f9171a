// A stage's process and its neighbours: how they find each other, and how what one puts out gets to the other.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codec/magnitude.h"
#include "runtime/stage_process.h"
#include "transport/connect.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t most_reserved = std::uint64_t{1} << 26U;  // values, before they come

}  // namespace

/// As the link between the two nodes is described, where this one is emulated.
void StageProcess::shape(transport::Shaped& connection, std::uint32_t to_stage) const {
  if (!setup_->emulated) return;
  const pipeline::DeviceLink& link =
      setup_->problem.links[incarnation_->cut[incarnation_->assignment.stage].device][incarnation_->cut[to_stage].device];
  connection.reshape({.up = std::make_shared<transport::Pipe>(event_loop_.get_executor(), link.bytes_per_second),
                      .beyond = {},
                      .latency = from_seconds(link.latency_s),
                      .in = {},
                      .peer_bytes_per_second = 0});
}

void StageProcess::peer_hello() {
  const auto address = transport::parse_address(incarnation_->assignment.next);
  if (!address) return part(address.error().message);
  transport::Options options = options_.transport;
  options.job = setup_->job;
  transport::connect(event_loop_, *address, options, [this, alive = alive_, incarnation = incarnations_](auto connection) {
    if (!*alive || ended_ || !incarnation_ || incarnation != incarnations_) return;
    if (!connection) return part(connection.error().message);
    auto held =
        std::make_unique<transport::Shaped>(std::move(*connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
    shape(*held, incarnation_->assignment.stage + 1);
    held->start(*this);
    held->send(wire::PeerHello{incarnation_->assignment.generation, incarnation_->assignment.stage, incarnation_->assignment.next_key});
    transport::Connection* name = held.get();
    neighbours_[name] = {std::move(held), false, std::nullopt, clock_.now()};
  });
}

void StageProcess::peer_connected(transport::Connection& from, const wire::PeerHello& peer_hello) {
  const auto found = neighbours_.find(&from);
  if (found == neighbours_.end()) return;
  found->second.reported = peer_hello;
  if (!incarnation_ || peer_hello.generation != incarnation_->assignment.generation)
    return;  // of a generation that is over, or is still to come
  if (!found->second.came) {
    incarnation_->after = &from;  // it is laid out: what we put out is taken
    return begin_when_all_is_here();
  }
  take_before(*found->second.connection);
  begin_when_all_is_here();
}

void StageProcess::take_before(transport::Shaped& connection) {
  incarnation_->before = &connection;
  shape(connection, incarnation_->assignment.stage - 1);
  connection.send(
      wire::PeerHello{incarnation_->assignment.generation, incarnation_->assignment.stage, incarnation_->assignment.before_key});
}

void StageProcess::ship(std::uint64_t micro, bool back) {
  Incarnation& incarnation = *incarnation_;
  transport::Connection* to = back ? incarnation.before : incarnation.after;
  auto& made = back ? incarnation.returning : incarnation.outgoing;
  const auto found = made.find(micro);
  check(found != made.end(), "what is shipped was computed");
  auto held = std::make_shared<const Activation>(std::move(found->second));
  made.erase(found);
  if (!back) incarnation.shipped[micro] = held->values.size();
  if (to == nullptr) return;
  const std::size_t slices = setup_->slices;
  const std::size_t largest = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const std::size_t piece = std::clamp<std::size_t>((held->values.size() + slices - 1) / slices, 1, largest);
  for (std::size_t at = 0; at < held->values.size(); at += piece) {
    const auto run = std::span(held->values).subspan(at, std::min(piece, held->values.size() - at));
    leaving_[to][next_ticket_] = held;
    to->send(transport::BulkMessage{wire::ActivationSlice{incarnation.assignment.generation, micro, back, at, held->shape},
                                    std::as_bytes(run), static_cast<std::uint32_t>(micro), next_ticket_++});
  }
}

/// What has come so far, in order; the machine passes over what it has heard of. (Some came before it was there.)
void StageProcess::tell_of_what_is_here() {
  std::vector<protocol::StageEvent> events;
  for (const auto& [micro, coming] : incarnation_->inputs)
    if (coming.missing == 0) events.emplace_back(protocol::InputHere{micro});
  for (const auto& [micro, coming] : incarnation_->gradients)
    if (coming.missing == 0) events.emplace_back(protocol::GradientHere{micro});
  const std::uint64_t incarnation = incarnations_;
  for (const protocol::StageEvent& event : events)
    if (incarnation == incarnations_) tell(event);
}

std::span<std::byte> StageProcess::receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (ended_) return {};
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    expel(from, *why);
    return {};
  }
  ReceiveBuffer& landing_buffer = landing_buffers_[&from];
  landing_buffer = {};
  if (bytes % sizeof(float) != 0) return {};
  const std::size_t count = bytes / sizeof(float);
  const auto* slice = std::get_if<wire::StageSlice>(&head);
  const auto* passed = std::get_if<wire::ActivationSlice>(&head);
  if (!incarnation_ || (slice != nullptr ? slice->generation : passed->generation) != incarnation_->assignment.generation) {
    landing_buffer.discarded_bytes.resize(bytes);
    return landing_buffer.discarded_bytes;
  }
  const auto land = [&](std::vector<float>& all, std::uint64_t offset, std::shared_ptr<void> keeps) {
    landing_buffer.keeps = std::move(keeps);
    landing_buffer.values = std::span(all).subspan(offset, count);
    return std::as_writable_bytes(landing_buffer.values);
  };
  if (slice != nullptr) {
    store::StagePart& part = *incarnation_->part;
    std::vector<float>& all = slice->state_kind == wire::StateKind::values  ? part.values
                              : slice->state_kind == wire::StateKind::first ? part.first
                                                                            : part.second;
    if (slice->offset > all.size() || count > all.size() - slice->offset) return {};
    return land(all, slice->offset, incarnation_->part);
  }
  auto& coming = (passed->back ? incarnation_->gradients : incarnation_->inputs)[passed->micro];
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
  const ReceiveBuffer landing_buffer = std::exchange(landing_buffers_[&from], {});
  if (!incarnation_ || !landing_buffer.keeps) return;
  if (const auto* slice = std::get_if<wire::StageSlice>(&head)) {
    if (landing_buffer.keeps != incarnation_->part) return;  // meant for what we were before
    incarnation_->received[static_cast<std::size_t>(slice->state_kind)] += landing_buffer.values.size();
    incarnation_->missing -= landing_buffer.values.size();
    return begin_when_all_is_here();
  }
  const auto& passed = std::get<wire::ActivationSlice>(head);
  auto& coming = passed.back ? incarnation_->gradients : incarnation_->inputs;
  const auto found = coming.find(passed.micro);
  if (passed.generation != incarnation_->assignment.generation || found == coming.end() || landing_buffer.keeps != found->second.activation)
    return;
  incarnation_->finite =
      incarnation_->finite && codec::all_finite(landing_buffer.values);  // the conductor hears of it with the next mini-batch
  found->second.missing -= landing_buffer.values.size();
  if (found->second.missing > 0) return;
  if (passed.back) {
    ++incarnation_->next_gradient;
    incarnation_->shipped.erase(passed.micro);
    tell(protocol::GradientHere{passed.micro});
  } else {
    ++incarnation_->next_input;
    tell(protocol::InputHere{passed.micro});
  }
}

}  // namespace motley::runtime
