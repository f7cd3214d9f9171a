#include "transport/reception.h"

#include <fmt/format.h>

#include "transport/bulk_terms.h"
#include "transport/stream_connection.h"

namespace motley::transport {

void Reception::admit(Stream stream) {
  if (visits_.size() >= options_.handshakes)  // a copy is given: the element itself goes with the list
    dismiss(VisitPtr(visits_.front()), fmt::format("{} handshakes were under way: the oldest made room", options_.handshakes));
  const asio::any_io_executor executor = stream.get_executor();
  std::string from = peer_of(stream);
  const auto visit = std::make_shared<Visit>(Visit{std::move(stream), std::move(from), asio::steady_timer(executor)});
  visits_.push_back(visit);
  expect_in_time(visit);
  asio::co_spawn(executor, receive(shared_from_this(), visit), rethrow);
}

void Reception::expect_in_time(const VisitPtr& visit) {
  visit->deadline.expires_after(options_.handshake_time);
  visit->deadline.async_wait([self = weak_from_this(), late = std::weak_ptr(visit)](boost::system::error_code cancelled) {
    const auto here = self.lock();
    const auto who = late.lock();
    if (here && who && !cancelled)
      here->dismiss(who, fmt::format("the handshake took longer than {} ms", here->options_.handshake_time.count()));
  });
}

asio::awaitable<void> Reception::receive(std::shared_ptr<Reception> self, VisitPtr visit) {
  const Result<Exchange> claim = co_await hear_claim(visit->stream, self->options_);
  if (visit->gone) co_return;
  if (!claim.ok())
    self->dismiss(visit, claim.error().message);
  else if (claim->lane == Lane::control)
    co_await self->receive_control(visit, *claim);
  else
    co_await self->receive_bulk(visit, *claim);
}

asio::awaitable<void> Reception::receive_control(VisitPtr visit, Exchange claim) {
  if (half_of(claim.session)) {
    co_await turn_away(visit->stream, Verdict::wrong_lane);
    co_return dismiss(visit, "a control lane whose session is here already");
  }
  visit->waits_for_bulk = claim.session;
  const Outcome welcomed = co_await welcome(visit->stream, claim, options_);
  if (!welcomed.ok()) dismiss(visit, welcomed.error().message);
}

asio::awaitable<void> Reception::receive_bulk(VisitPtr visit, Exchange claim) {
  const VisitPtr control = half_of(claim.session);
  if (!control) {
    co_await turn_away(visit->stream, Verdict::wrong_lane);
    co_return dismiss(visit, "a bulk lane whose control lane is not here");
  }
  control->waits_for_bulk.reset();  // taken: no second bulk lane can have it
  const Outcome welcomed = co_await welcome(visit->stream, claim, options_);
  if (visit->gone) co_return dismiss(control, "its bulk lane is gone");
  if (control->gone) co_return dismiss(visit, "its control lane is gone");
  if (!welcomed.ok()) {
    dismiss(control, "its bulk lane is gone");
    co_return dismiss(visit, welcomed.error().message);
  }
  tune(control->stream, Lane::control, options_);
  tune(visit->stream, Lane::bulk, options_);
  Result<std::shared_ptr<BulkLane>> bulk = co_await agree_on_bulk(visit->stream, options_);
  if (visit->gone) co_return dismiss(control, "its bulk lane is gone");
  if (control->gone) co_return dismiss(visit, "its control lane is gone");
  if (!bulk.ok()) {
    dismiss(control, "its bulk lane is gone");
    co_return dismiss(visit, bulk.error().message);
  }
  remove(control);
  remove(visit);
  owner_->accepted(std::make_unique<StreamConnection>(std::move(control->stream), std::move(*bulk), options_));
}

Reception::VisitPtr Reception::half_of(const Session& session) const {
  for (const VisitPtr& visit : visits_)
    if (visit->waits_for_bulk == session) return visit;
  return nullptr;
}

void Reception::remove(const VisitPtr& visit) {
  visit->gone = true;
  visit->deadline.cancel();
  visits_.remove(visit);
}

void Reception::dismiss(const VisitPtr& visit, const std::string& why) {
  if (visit->gone) return;
  remove(visit);
  close_quietly(visit->stream);
  if (owner_ != nullptr) owner_->refused(visit->from, why);
}

void Reception::leave() {
  owner_ = nullptr;
  while (!visits_.empty()) dismiss(VisitPtr(visits_.front()), "the listener is gone");
}

}  // namespace motley::transport
