#include "runtime/worker_connections.h"

#include <fmt/format.h>

#include <utility>

namespace motley::runtime {

WorkerConnections::WorkerConnections(boost::asio::io_context& event_loop, const transport::Options& options, PeerOwner& owner,
                                     Expulsions& expulsions, Attached attached)
    : event_loop_(event_loop),
      options_(options),
      owner_(owner),
      expulsions_(expulsions),
      attached_(std::move(attached)),
      retired_(event_loop) {}

void WorkerConnections::add(std::unique_ptr<transport::Connection> connection) {
  auto made = std::make_unique<PeerConnection>(std::move(connection), event_loop_, options_, owner_);
  PeerConnection& peer = *made;
  connections_[&peer] = {.peer = std::move(made), .last_message = clock_.now()};
  peer.start();
}

void WorkerConnections::claimed(PeerConnection& worker, const wire::Attach& claim) {
  answer(worker, claim.worker, attachments_.claimed(worker, claim));
}

void WorkerConnections::admitted(const wire::Admitted& member) {
  for (const auto& [from, found] : attachments_.admitted(member)) answer(*from, member.worker, found);
}

void WorkerConnections::answer(PeerConnection& worker, WorkerId claimed, Attachments::Answer answer) {
  switch (answer) {
    case Attachments::Answer::attach: {
      connections_.at(&worker).member = claimed;
      return attached_(claimed, worker);
    }
    case Attachments::Answer::wait: return;
    case Attachments::Answer::refuse: return expel(worker, fmt::format("it attaches as worker {}, which it is not", claimed.value));
  }
}

void WorkerConnections::repeat_attached() const {
  for (const auto& [name, connection] : connections_)
    if (connection.member) attached_(*connection.member, *connection.peer);
}

void WorkerConnections::expel_silent(Duration longest, const std::function<bool(const PeerConnection&)>& is_member) {
  for (auto& [peer, connection] : connections_)
    if (clock_.now() - connection.last_message > longest && !is_member(*peer))
      expel(*connection.peer, fmt::format("it is no member's and has sent nothing for {:.0f} s", seconds(longest)));
}

void WorkerConnections::expel(PeerConnection& worker, const std::string& why) {
  expulsions_.expel(worker, Expulsions::Peer::unidentified, "a worker", why);
}

void WorkerConnections::remove(const PeerConnection& worker) {
  attachments_.closed(worker);
  auto found = connections_.extract(&worker);
  if (found.empty()) return;
  found.mapped().peer->retire();
  retired_.add(std::move(found.mapped().peer));
}

void WorkerConnections::stop() {
  for (auto& [name, connection] : connections_) connection.peer->retire();
}

}  // namespace motley::runtime
