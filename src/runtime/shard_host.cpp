#include "runtime/shard_host.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_pulls = 16;         // that wait for one worker, each with its snapshot; with overlap there are two or three
constexpr std::size_t batches_speculated = 2;  // at a time: one by the store thread, one waits for it

/// Of `asked` threads, or as many as help with so many values.
std::shared_ptr<store::ThreadPool> make_pool(std::size_t asked, const store::Layout& layout, std::span<const SliceId> slices) {
  std::size_t values = 0;
  for (const SliceId id : slices) values += layout[id].count;
  return std::make_shared<store::ThreadPool>(asked > 0 ? asked : store::useful_threads(values, std::thread::hardware_concurrency()));
}

}  // namespace

std::span<const std::byte> ShardHost::Snapshot::payload(const store::Layout& layout, SliceId slice) const {
  if (const auto found = coded.find(slice); found != coded.end()) return found->second;
  const auto bytes = std::as_const(*flat).bytes(layout[slice].offset, layout[slice].count);
  return bf16_transfer ? bytes.first(codec::encoded_bytes(layout[slice].bits(bf16_bits), layout[slice].count)) : bytes;
}

ShardHost::ShardHost(boost::asio::io_context& event_loop, ServerId server, const store::Layout& layout, const OptimizerSpec& optimizer,
                     const InitialState& initial_state, ShardOwner& owner, std::size_t threads)
    : event_loop_(event_loop),
      layout_(layout),
      server_(server),
      slices_(layout.of(server)),
      owner_(owner),
      machine_(server, slices_, initial_state.version),
      speculative_update_(layout.slices.size()),
      alive_(std::make_shared<bool>(true)),
      pool_(make_pool(threads, layout, slices_)),
      store_(std::make_shared<store::ShardStore>(layout, server, optimizer, initial_state.values, store::ExecutionContext{pool_})),
      shadows_(std::make_shared<Shadows>()) {
  if (initial_state.moments) store_->restore(*initial_state.moments, initial_state.version);
}

ShardHost::~ShardHost() { *alive_ = false; }

void ShardHost::receive(const wire::Message& message) {
  if (const auto* gone = std::get_if<wire::Forget>(&message)) {
    gone_.insert(gone->worker);
    pulls_.erase(gone->worker);
    attached_.erase(gone->worker);
    bf16_workers_.erase(gone->worker);
  }
  if (const auto* release = std::get_if<wire::Release>(&message)) drop_pulls_of_many(release->worker);
  protocol::ShardActions actions;
  machine_.step(message, actions);
  for (const auto& action : actions) carry_out(action);
  if (const auto* gone = std::get_if<wire::Forget>(&message)) drop_parts_of(gone->worker);
}

/// A worker that never attaches, or takes nothing, loses its own pulls. The chief, which cannot know of it, goes on being heard.
void ShardHost::drop_pulls_of_many(WorkerId worker) {
  const auto waiting = pulls_.find(worker);
  if (waiting == pulls_.end() || waiting->second.size() < most_pulls) return;
  pulls_.erase(waiting);
  machine_.lost_pulls(worker);
}

/// Of contributions that will never be whole, also such as the machine has not heard of yet.
void ShardHost::drop_parts_of(WorkerId worker) {
  std::erase_if(contributions_, [&](const auto& entry) {
    const bool in_part = entry.first.first == worker && entry.second.counted < slices_.size();
    if (in_part) speculative_update_.lost(worker, entry.first.second);
    return in_part;
  });
}

void ShardHost::carry_out(const protocol::ShardAction& action) {
  std::visit(match{[&](const protocol::Send& send) {
                     if (const auto* slice = std::get_if<wire::Pulled>(&send.message)) {
                       check(snapshotting_.has_value(), "slices are sent after their snapshot");
                       auto& pulls = pulls_[slice->worker];
                       if (pulls.empty() || pulls.back().slices.front().step != slice->step)
                         pulls.push_back({key_of(*snapshotting_, slice->version), {}, nullptr});
                       pulls.back().slices.push_back(*slice);
                       if (slice->slice != slices_.back()) return;
                       make_snapshot(*snapshotting_, pulls.back().key);
                       pulls.back().snapshot = snapshots_[pulls.back().key].snapshot.lock();
                       send_ready(slice->worker);
                     } else {
                       wire::Message message = send.message;
                       if (auto* whole = std::get_if<wire::Gathered>(&message))  // what is in it the machine does not know
                         whole->finite = contributions_.at({whole->worker, whole->step}).finite;
                       owner_.to_chief(message);
                     }
                   },
                   [&](const protocol::Commit& c) { commit(c.update); },
                   [&](const protocol::Free& f) {
                     speculative_update_.lost(f.worker, f.step);
                     contributions_.erase({f.worker, f.step});
                   },
                   [&](const protocol::Snapshot& s) {
                     snapshotting_ = s;
                     if (s.bits == fp32_bits) remember(s);
                     if (s.bits == fp32_bits && committing_) {
                       const store::SnapshotFormat format = awaited_after(committing_->update);
                       speculated_snapshot_ = SpeculatedSnapshot{{machine_.version(), format}, begin_snapshot(format)};
                     }
                     start_commit();
                     if (s.keep) store_thread_.post([store = store_, s] { store->keep({s.worker, s.step}, s.rho); });
                   },
                   [&](const protocol::Compare& c) { compare(c); },
                   [&](const protocol::ForgetSent& f) {
                     start_commit();
                     store_thread_.post([store = store_, f] { store->forget(f.worker); });
                   },
                   [&](const protocol::ExportNow& e) { export_now(e); },
                   [&](const protocol::ProveAlive&) {
                     store_thread_.post([this, alive = alive_] {
                       boost::asio::post(event_loop_, [this, alive] {
                         if (*alive) owner_.to_chief(wire::Probe{server_});
                       });
                     });
                   }},
             action);
}

// Numbers, on their thread ---------------------------------------------------------------------------------------------------------------

void ShardHost::commit(const wire::Apply& update) {
  start_commit();  // the one before it
  std::vector<Contribution> parts;
  for (const wire::Part& part : update.parts) {
    auto found = contributions_.extract({part.worker, part.step});
    check(!found.empty(), "what is committed is here");
    parts.push_back(std::move(found.mapped()));
  }
  snapshots_.clear();  // of an older version now
  const bool speculated = speculative_update_.right(update);
  speculated_snapshot_ = speculated ? std::exchange(expected_, std::nullopt) : std::nullopt;
  committing_ = Committing{update, std::move(parts), speculated};
  if (speculated) return start_commit();
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (*alive) start_commit();
  });
}

void ShardHost::start_commit() {
  if (!committing_) return;
  decode_waiting();
  const Committing now = std::move(*std::exchange(committing_, std::nullopt));
  store_thread_.post([this, alive = alive_, store = store_, now, prepared = speculated_snapshot_] {
    const auto recorded = [&](std::span<const SliceId> slices) {
      if (!prepared || slices.empty()) return;
      boost::asio::post(event_loop_,
                        [this, alive, snapshot = prepared->snapshot, done = std::vector<SliceId>(slices.begin(), slices.end())] {
                          if (*alive) slices_done(snapshot, done);
                        });
    };
    const std::vector<store::WeightedPart> parts = weighted(now.update.parts, now.parts);
    if (now.speculated) return store->commit(parts, recorded);
    store->apply({now.update.kind, now.update.rate, now.update.momentum, now.update.share, now.update.compensation}, parts,
                 prepared ? prepared->key.format : store::SnapshotFormat(),
                 prepared ? prepared->snapshot->flat->floats() : std::span<float>(), recorded);
  });
  speculate(now.update);
}

/// One that will be written to, slice by slice.
ShardHost::SharedSnapshot ShardHost::begin_snapshot(const store::SnapshotFormat& format) const {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->bf16_transfer = format.bf16_transfer;
  snapshot->flat = make_shareable_buffer(layout_.values);
  snapshot->done.resize(layout_.slices.size());
  return snapshot;
}

/// Those that are needed first go before the pump does anything else about the others: there may be hundreds, for many workers.
void ShardHost::slices_done(const SharedSnapshot& snapshot, std::vector<SliceId> slices) {
  constexpr std::size_t single_batch = 8;
  const std::size_t now = std::min(single_batch, slices.size());
  for (std::size_t s = 0; s < now; ++s) snapshot->done[slices[s].value] = true;
  std::vector<WorkerId> waiting;
  for (const auto& [worker, pulls] : pulls_)
    if (pulls.front().snapshot == snapshot) waiting.push_back(worker);
  for (const WorkerId worker : waiting) send_ready(worker);
  if (now == slices.size()) return;
  slices.erase(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(now));
  boost::asio::post(event_loop_, [this, alive = alive_, snapshot, slices = std::move(slices)]() mutable {
    if (*alive) slices_done(snapshot, std::move(slices));
  });
}

std::vector<store::WeightedPart> ShardHost::weighted(const std::vector<wire::Part>& parts, const std::vector<Contribution>& contributions) {
  std::vector<store::WeightedPart> weighted;
  for (std::size_t i = 0; i < parts.size(); ++i)
    weighted.push_back({std::as_const(*contributions[i].flat).floats(),
                        parts[i].weight,
                        {parts[i].worker, parts[i].parameters},
                        contributions[i].bf16_transfer});
  return weighted;
}

/// What may come after this one.
void ShardHost::speculate(const wire::Apply& update) {
  expected_.reset();
  complete_.clear();
  if (!speculative_update_.made(update)) return;
  const store::SnapshotFormat format = awaited_after(update);
  expected_ = SpeculatedSnapshot{{update.version.next(), format}, begin_snapshot(format)};
  store_thread_.post([store = store_, update, format, snapshot = expected_->snapshot] {
    store->begin_speculation({update.kind, update.next_rate, update.momentum, update.share}, format, snapshot->flat->floats());
  });
}

/// Of the update that is expected, this slice may be here from everybody now.
void ShardHost::speculate_slice(const wire::Push& push) {
  start_commit();  // what is pushed now is for what comes after it
  if (!speculative_update_.arrived(push.worker, push.step, push.slice)) return;
  complete_.push_back(push.slice);
  if (speculating_ < batches_speculated) speculate_waiting();
}

/// Slices that become complete while two batches of others are being prepared gather, and are then prepared side by side: those that
/// workers need first, and not so many that the next would wait long. (Two, so that the store thread never waits for the pump.)
void ShardHost::speculate_waiting() {
  if (complete_.empty()) return;
  std::vector<Contribution> contributions;
  for (const wire::Part& part : speculative_update_.parts()) {
    const auto found = contributions_.find({part.worker, part.step});
    if (found == contributions_.end()) return complete_.clear();  // it was lost: nothing like this will come
    contributions.push_back(found->second);
  }
  constexpr std::size_t single_batch = std::size_t{1} << 19U;  // values
  std::sort(complete_.begin(), complete_.end(), [&](SliceId a, SliceId b) { return layout_[a].priority < layout_[b].priority; });
  std::size_t values = 0;
  auto end = complete_.begin();
  while (end != complete_.end() && values < single_batch) values += layout_[*end++].count;
  std::vector<SliceId> slices(complete_.begin(), end);
  complete_.erase(complete_.begin(), end);
  ++speculating_;
  decode_waiting();
  store_thread_.post([this, alive = alive_, store = store_, parts = speculative_update_.parts(), contributions = std::move(contributions),
                      snapshot = expected_->snapshot, slices = std::move(slices)] {
    store->speculate(weighted(parts, contributions), slices);
    boost::asio::post(event_loop_, [this, alive] {
      if (!*alive) return;
      --speculating_;
      speculate_waiting();
    });
  });
}

void ShardHost::compare(const protocol::Compare& which) {
  const auto found = contributions_.find({which.worker, which.step});
  check(found != contributions_.end(), "what is compared is here");
  start_commit();
  decode_waiting();
  store_thread_.post([this, alive = alive_, store = store_, which, part = found->second] {
    const double alignment = store->alignment({std::as_const(*part.flat).floats(), 1, {}, part.bf16_transfer});
    boost::asio::post(event_loop_, [this, alive, which, alignment] {
      if (*alive) owner_.to_chief(wire::AlignmentResult{server_, which.worker, which.step, alignment});
    });
  });
}

void ShardHost::remember(const protocol::Snapshot& plain) {
  last_rho_ = plain.rho;
  if (plain.bf16_transfer)
    bf16_workers_.insert(plain.worker);
  else
    bf16_workers_.erase(plain.worker);
}

/// The snapshot that is made on the way: there is one, and where workers want unlike ones, those wait least who compute in few bits, since
/// they are the fast ones.
store::SnapshotFormat ShardHost::awaited_after(const wire::Apply& update) const {
  const auto sent_as_bf16 = [&](const wire::Part& part) { return bf16_workers_.contains(part.worker); };
  return {last_rho_, std::any_of(update.parts.begin(), update.parts.end(), sent_as_bf16)};
}

ShardHost::SnapshotKey ShardHost::key_of(const protocol::Snapshot& wanted, Version version) const {
  if (wanted.bits == fp32_bits) return {version, {wanted.rho, wanted.bf16_transfer}};
  return {version, wanted.rho, wanted.bits, wanted.pull_class, wanted.whole};
}

void ShardHost::make_snapshot(const protocol::Snapshot& wanted, const SnapshotKey& key) {
  const auto [entry, fresh] = snapshots_.try_emplace(key);
  if (!fresh && (entry->second.being_made || !entry->second.snapshot.expired())) return;
  entry->second = {};
  if (speculated_snapshot_ && speculated_snapshot_->key == key) {
    entry->second = {false, speculated_snapshot_->snapshot};
    return;
  }
  store_thread_.post(
      [this, alive = alive_, store = store_, shadows = shadows_, pool = pool_, wanted, key, server = server_, layout = layout_] {
        auto snapshot = std::make_shared<Snapshot>();
        auto flat = make_shareable_buffer(layout.values);
        if (wanted.bits == fp32_bits) {
          snapshot->bf16_transfer = key.format.bf16_transfer;
          store->snapshot(key.format, flat->floats());
        } else {
          store::PullShadow& shadow = shadows->try_emplace(wanted.pull_class, layout, server, pool).first->second;
          if (wanted.first_of_class) {
            store->snapshot(wanted.rho, flat->floats());
            shadow.move_to(flat->floats(), wanted.bits);
          }
          if (wanted.whole)
            shadow.values(flat->floats());
          else
            for (const SliceId id : layout.of(server)) snapshot->coded[id] = shadow.change(id);
        }
        if (wanted.whole) snapshot->flat = std::move(flat);
        boost::asio::post(event_loop_, [this, alive, key, ready = SharedSnapshot(std::move(snapshot))] {
          if (*alive) snapshot_ready(key, ready);
        });
      });
}

void ShardHost::snapshot_ready(const SnapshotKey& key, const SharedSnapshot& snapshot) {
  if (key.version == machine_.version()) snapshots_[key] = {false, snapshot};
  std::vector<WorkerId> waiting;
  for (auto& [worker, pulls] : pulls_) {
    for (Pull& pull : pulls)
      if (pull.key == key) pull.snapshot = snapshot;
    waiting.push_back(worker);
  }
  for (const WorkerId worker : waiting) send_ready(worker);
}

void ShardHost::export_now(const protocol::ExportNow& wanted) {
  start_commit();
  store_thread_.post([this, alive = alive_, store = store_, wanted, values = layout_.values] {
    auto out = std::make_shared<Exported>();
    out->version = wanted.version;
    out->values = make_buffer(values);
    store->values(out->values->floats());
    if (wanted.state) store->moments(out->moments.emplace());
    boost::asio::post(event_loop_, [this, alive, out] {
      if (*alive) owner_.exported(out);
    });
  });
}

// Slices out -----------------------------------------------------------------------------------------------------------------------------

void ShardHost::attach(WorkerId worker, transport::Connection& connection) {
  if (gone_.contains(worker)) return;
  attached_[worker] = &connection;
  send_ready(worker);
}

void ShardHost::detach(const transport::Connection& connection) {
  std::erase_if(attached_, [&](const auto& entry) { return entry.second == &connection; });
  landing_buffers_.erase(&connection);
  std::erase_if(under_way_, [&](const auto& entry) { return entry.second.through == &connection; });
}

void ShardHost::send_ready(WorkerId worker) {
  const auto connection = attached_.find(worker);
  const auto found = pulls_.find(worker);
  if (connection == attached_.end() || found == pulls_.end()) return;
  auto& pulls = found->second;
  while (!pulls.empty() && pulls.front().snapshot) {
    const SharedSnapshot snapshot = pulls.front().snapshot;
    std::vector<wire::Pulled>& slices = pulls.front().slices;
    const auto waiting = std::stable_partition(slices.begin(), slices.end(), [&](const wire::Pulled& s) { return snapshot->has(s.slice); });
    for (auto ready = slices.begin(); ready != waiting; ++ready) {
      const wire::Pulled& slice = *ready;
      const std::span<const std::byte> payload = snapshot->payload(layout_, slice.slice);
      under_way_[next_ticket_] = {snapshot, connection->second};
      connection->second->send(transport::BulkMessage{slice, payload, layout_[slice.slice].priority, next_ticket_++, /*may_borrow=*/true});
      bytes_pulled_ += payload.size();
    }
    slices.erase(slices.begin(), waiting);
    if (!slices.empty()) return;
    pulls.erase(pulls.begin());
  }
  if (pulls.empty()) pulls_.erase(found);
}

void ShardHost::sent(std::uint64_t ticket) { under_way_.erase(ticket); }

}  // namespace motley::runtime
