#include "runtime/shard_host.h"

#include <fmt/format.h>

#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/match.h"

namespace motley::runtime {

ShardHost::ShardHost(boost::asio::io_context& event_loop, ServerId server, const store::Layout& layout, const OptimizerSpec& optimizer,
                     const InitialState& initial_state, ShardOwner& owner, std::size_t threads)
    : server_(server),
      layout_(layout),
      owner_(owner),
      machine_(server, layout.of(server), initial_state.version),
      last_slice_(layout.of(server).back()),
      store_thread_(event_loop, layout, server, optimizer, initial_state, threads),
      contributions_(layout, server, store_thread_, [this](const wire::Push& push) { receive(push); }),
      sender_(event_loop, layout),
      snapshots_(layout, server, initial_state.version, store_thread_,
                 [this](const SnapshotKey& key, const SharedSnapshot& snapshot) { sender_.ready(key, snapshot); }),
      updates_(layout, store_thread_, contributions_, snapshots_,
               [this](const SharedSnapshot& snapshot, std::vector<SliceId> slices) { sender_.written(snapshot, std::move(slices)); }) {}

void ShardHost::receive(const wire::Message& message) {
  const auto* gone = std::get_if<wire::Forget>(&message);
  if (gone != nullptr) forget(gone->worker);
  // A worker that takes nothing loses its own pulls only; the chief, which does not know, is not refused.
  const auto* release = std::get_if<wire::Release>(&message);
  if (release != nullptr && sender_.drop_excess(release->worker)) machine_.lost_pulls(release->worker);
  protocol::ShardActions actions;
  machine_.step(message, actions);
  carry_out(actions);
  if (gone != nullptr) contributions_.erase_incomplete(gone->worker);
}

void ShardHost::forget(WorkerId worker) {
  forgotten_.insert(worker);
  sender_.forget(worker);
  snapshots_.forget(worker);
}

wire::Objection ShardHost::objection(const wire::Message& message) const {
  const auto* release = std::get_if<wire::Release>(&message);
  if (release != nullptr && !codec::make(release->pull_bits).ok()) return fmt::format("there is no codec of {} bits", release->pull_bits);
  return machine_.objection(message);
}

wire::Objection ShardHost::objection(const transport::Connection& from, const wire::Push& push) const {
  if (!forgotten_.contains(push.worker) && !sender_.is_attached(from, push.worker))
    return fmt::format("it pushes for worker {} and is not attached as it", push.worker.value);
  return machine_.objection(push);
}

void ShardHost::attach(WorkerId worker, transport::Connection& connection) {
  if (!forgotten_.contains(worker)) sender_.attach(worker, connection);
}

void ShardHost::detach(const transport::Connection& connection) {
  sender_.detach(connection);
  contributions_.detach(connection);
}

std::span<std::byte> ShardHost::receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes) {
  if (objection(from, push)) return {};
  return contributions_.receive_buffer(from, push, bytes, machine_.is_over(push));
}

void ShardHost::received(const transport::Connection& from, const wire::Push& push) {
  if (!contributions_.received(from, push, machine_.is_over(push))) return;
  slice_arrived(push);
  receive(push);
}

bool ShardHost::accept_in_place(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                                const transport::BorrowedMemory& borrow) {
  if (objection(from, push) || machine_.is_over(push)) return false;
  if (!contributions_.accept_in_place(push, payload, borrow)) return false;
  slice_arrived(push);
  return true;
}

void ShardHost::slice_arrived(const wire::Push& push) {
  updates_.flush();  // a slice that arrives now belongs to a later update
  protocol::ShardActions actions;
  machine_.slice_arrived(push, actions);
  carry_out(actions);
}

// Actions of the machine ---------------------------------------------------------------------------------------------------------------

void ShardHost::carry_out(const protocol::ShardActions& actions) {
  const auto carry_out_one = match{[&](const protocol::Send& a) { send(a); },
                                   [&](const protocol::Commit& a) { updates_.commit(a); },
                                   [&](const protocol::Speculate& a) { updates_.speculate(a); },
                                   [&](const protocol::Free& a) {
                                     contributions_.erase({a.worker, a.step});
                                   },
                                   [&](const protocol::Snapshot& a) { begin_pull(a); },
                                   [&](const protocol::Compare& a) { compare(a); },
                                   [&](const protocol::ForgetSent& a) {
                                     updates_.flush();
                                     store_thread_.run([worker = a.worker](store::ShardStore& store) { store.forget(worker); });
                                   },
                                   [&](const protocol::ExportNow& a) { export_now(a); },
                                   [&](const protocol::ProveAlive&) { answer_probe(); }};
  for (const protocol::ShardAction& action : actions) std::visit(carry_out_one, action);
}

void ShardHost::send(const protocol::Send& send) {
  if (const auto* slice = std::get_if<wire::Pulled>(&send.message)) return add_to_pull(*slice);
  wire::Message message = send.message;
  if (auto* gathered = std::get_if<wire::Gathered>(&message))  // the machine knows no values
    gathered->finite = contributions_.finite({gathered->worker, gathered->step});
  owner_.to_chief(message);
}

void ShardHost::begin_pull(const protocol::Snapshot& request) {
  pull_request_ = PullRequest{request, {}};
  if (request.bits == fp32_bits) {
    snapshots_.note_format(request);
    updates_.expect_pull();
  }
  updates_.flush();
  if (request.keep) store_thread_.run([request](store::ShardStore& store) { store.keep({request.worker, request.step}, request.rho); });
}

void ShardHost::add_to_pull(const wire::Pulled& slice) {
  check(pull_request_.has_value(), "slices are sent after their snapshot");
  pull_request_->slices.push_back(slice);
  if (slice.slice != last_slice_) return;
  PullRequest request = *std::exchange(pull_request_, std::nullopt);
  const SnapshotKey key = snapshots_.key_of(request.snapshot);
  sender_.add(slice.worker, {key, std::move(request.slices), snapshots_.find_or_make(request.snapshot)});
}

void ShardHost::compare(const protocol::Compare& wanted) {
  const Contribution* found = contributions_.find({wanted.worker, wanted.step});
  check(found != nullptr, "a contribution that is compared is here");
  updates_.flush();
  contributions_.flush_decoding();
  store_thread_.run(
      [part = *found](store::ShardStore& store) {
        return store.alignment({std::as_const(*part.flat).floats(), 1, {}, part.bf16_transfer});
      },
      [this, wanted](double alignment) {
        owner_.to_chief(wire::AlignmentResult{server_, wanted.worker, wanted.step, alignment});
      });
}

void ShardHost::export_now(const protocol::ExportNow& wanted) {
  updates_.flush();
  store_thread_.run(
      [wanted, values = layout_.values](store::ShardStore& store) {
        auto out = std::make_shared<Exported>();
        out->version = wanted.version;
        out->values = make_buffer(values);
        store.values(out->values->floats());
        if (wanted.state) store.moments(out->moments.emplace());
        return out;
      },
      [this](const std::shared_ptr<Exported>& out) { owner_.exported(out); });
}

/// After all work that was given to the store thread before.
void ShardHost::answer_probe() {
  store_thread_.run([](store::ShardStore&) {}, [this] { owner_.to_chief(wire::Probe{server_}); });
}

}  // namespace motley::runtime
