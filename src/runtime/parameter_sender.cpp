#include "runtime/parameter_sender.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/constants.h"

namespace motley::runtime {

void ParameterSender::attach(WorkerId worker, transport::Connection& connection) {
  attached_[worker] = &connection;
  send_ready(worker);
}

void ParameterSender::detach(const transport::Connection& connection) {
  std::erase_if(attached_, [&](const auto& entry) { return entry.second == &connection; });
  std::erase_if(in_flight_, [&](const auto& entry) { return entry.second.connection == &connection; });
}

void ParameterSender::forget(WorkerId worker) {
  pulls_.erase(worker);
  attached_.erase(worker);
}

bool ParameterSender::is_attached(const transport::Connection& connection) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const auto& entry) { return entry.second == &connection; });
}

bool ParameterSender::is_attached(const transport::Connection& connection, WorkerId worker) const {
  const auto found = attached_.find(worker);
  return found != attached_.end() && found->second == &connection;
}

void ParameterSender::add(WorkerId worker, Pull pull) {
  pulls_[worker].push_back(std::move(pull));
  send_ready(worker);
}

bool ParameterSender::drop_excess(WorkerId worker) {
  const auto waiting = pulls_.find(worker);
  if (waiting == pulls_.end() || waiting->second.size() < most_waiting_pulls) return false;
  pulls_.erase(waiting);
  return true;
}

void ParameterSender::ready(const SnapshotKey& key, const SharedSnapshot& snapshot) {
  std::vector<WorkerId> waiting;
  for (auto& [worker, pulls] : pulls_) {
    for (Pull& pull : pulls)
      if (pull.key == key) pull.snapshot = snapshot;
    waiting.push_back(worker);
  }
  for (const WorkerId worker : waiting) send_ready(worker);
}

void ParameterSender::written(const SharedSnapshot& snapshot, std::vector<SliceId> slices) {
  const auto rest = slices.begin() + static_cast<std::ptrdiff_t>(std::min(slices_per_send, slices.size()));
  std::for_each(slices.begin(), rest, [&](SliceId slice) { snapshot->written[slice.value] = true; });
  std::vector<WorkerId> waiting;
  for (const auto& [worker, pulls] : pulls_)
    if (pulls.front().snapshot == snapshot) waiting.push_back(worker);
  for (const WorkerId worker : waiting) send_ready(worker);
  if (rest == slices.end()) return;
  slices.erase(slices.begin(), rest);
  boost::asio::post(event_loop_, [alive = anchor_.watch(), snapshot, slices = std::move(slices)]() mutable {
    if (ParameterSender* self = alive.get()) self->written(snapshot, std::move(slices));
  });
}

void ParameterSender::send_ready(WorkerId worker) {
  const auto connection = attached_.find(worker);
  const auto found = pulls_.find(worker);
  if (connection == attached_.end() || found == pulls_.end()) return;
  std::vector<Pull>& pulls = found->second;
  while (!pulls.empty() && pulls.front().snapshot) {
    const SharedSnapshot snapshot = pulls.front().snapshot;
    std::vector<wire::Pulled>& slices = pulls.front().slices;
    const auto waiting = std::stable_partition(slices.begin(), slices.end(), [&](const wire::Pulled& s) { return snapshot->has(s.slice); });
    for (auto ready = slices.begin(); ready != waiting; ++ready) {
      const std::span<const std::byte> payload = snapshot->payload(layout_, ready->slice);
      in_flight_[next_ticket_] = {snapshot, connection->second};
      connection->second->send(
          transport::BulkMessage{*ready, payload, layout_[ready->slice].priority, next_ticket_++, /*may_borrow=*/true});
      bytes_sent_ += payload.size();
    }
    slices.erase(slices.begin(), waiting);
    if (!slices.empty()) return;
    pulls.erase(pulls.begin());
  }
  if (pulls.empty()) pulls_.erase(found);
}

}  // namespace motley::runtime
