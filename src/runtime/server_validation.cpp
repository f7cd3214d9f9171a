// A server's process and what its peers may send: its chief what a chief does, a worker only for the member whose key it has shown.
// Whatever does not pass closes its connection, before it reaches the shard or a buffer.
#include <fmt/format.h>

#include "runtime/server_process.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_early = std::size_t{1} << 16U;  // messages that wait for the slices: some for each worker of the cluster

}  // namespace

wire::Objection ServerProcess::objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const {
  const bool chief = &from == chief_.get();
  if (auto why = wire::objection(chief ? wire::Sender::servers_chief : wire::Sender::servers_worker, lane, message)) return why;
  if (chief) return objection_to_chief(message);
  const auto* push = std::get_if<wire::Push>(&message);
  if (push == nullptr) return {};
  return shard_ ? shard_->objection(from, *push) : wire::Objection{"it pushes to a server that has not begun"};
}

/// In its order: first what the job is, then the slices, then what happens to them.
wire::Objection ServerProcess::objection_to_chief(const wire::Message& message) const {
  const std::string_view name = wire::name_of(message);
  const bool job_description = std::holds_alternative<wire::JobDescription>(message);
  if (job_description == setup_.has_value()) return fmt::format("its {} comes {} the job", name, setup_ ? "after" : "before");
  const bool of_initial_state = std::holds_alternative<wire::StateEnd>(message) || std::holds_alternative<wire::StateChunk>(message) ||
                                std::holds_alternative<wire::SlicePlacement>(message);
  if (of_initial_state && shard_) return fmt::format("its {} comes after the server has begun", name);
  if (std::holds_alternative<wire::StateEnd>(message) && all_) return "it has sent all slices twice";
  if (early_.size() >= most_early) return fmt::format("more than {} messages come before the slices", most_early);
  if (const auto* slice = std::get_if<wire::StateChunk>(&message)) {
    if (slice->server != options_.server) return fmt::format("it sends a slice of server {}", slice->server.value);
    if (received_chunks_.contains({slice->slice, slice->state_kind})) return fmt::format("it sends slice {} twice", slice->slice.value);
  }
  const auto* member = std::get_if<wire::Admitted>(&message);
  if (member != nullptr && attachments_.knows(member->worker)) return fmt::format("it admits worker {} twice", member->worker.value);
  const auto* release = std::get_if<wire::Release>(&message);
  if (release != nullptr && !attachments_.knows(release->worker))
    return fmt::format("it releases parameters for worker {}, which is no member", release->worker.value);
  return {};
}

void ServerProcess::to_shard(const wire::Message& message) {
  if (const auto why = shard_->objection(message)) return expel(*chief_, *why);
  if (const auto* gone = std::get_if<wire::Forget>(&message)) attachments_.forget(gone->worker);
  shard_->receive(message);
}

/// With the reason, which is told once: a connection takes its time to close.
void ServerProcess::expel(transport::Connection& from, const std::string& why) {
  if (!sent_away_.insert(&from).second) return;
  const std::string sentence = fmt::format("sent {} at {} away: {}", &from == chief_.get() ? "the chief" : "a worker", from.peer(), why);
  &from == chief_.get() ? log_(sentence) : refusals_.say(sentence);
  from.close(why);
}

void ServerProcess::admitted(const wire::Admitted& member) {
  for (const auto& [from, answer] : attachments_.admitted(member)) {
    if (answer == Attachments::Answer::attach)
      attach(*from, member.worker);
    else
      expel(*from, fmt::format("it attaches as worker {}, which it is not", member.worker.value));
  }
}

void ServerProcess::attach(transport::Connection& from, WorkerId worker) {
  if (shard_)
    shard_->attach(worker, from);
  else
    attached_early_[&from] = worker;
}

/// Workers that wait for a chief's Welcome send a Heartbeat meanwhile; members may be quiet for as long as they compute.
void ServerProcess::watch_pending() {
  join_timer_.expires_after(options_.join_deadline / 4);
  join_timer_.async_wait([this, alive = alive_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_) return;
    const Instant now = clock_.now();
    for (const auto& [connection, shaped] : workers_)
      if (now - last_heard_.at(connection) > options_.join_deadline && !(shard_ && shard_->is_attached(*connection)))
        expel(*shaped, fmt::format("it is no member's and has sent nothing for {:.0f} s", seconds(options_.join_deadline)));
    watch_pending();
  });
}

}  // namespace motley::runtime
