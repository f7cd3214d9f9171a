#include "protocol/shard.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

namespace motley::protocol {

Shard::Shard(ServerId server, std::vector<SliceId> slices, Version version)
    : server_(server), slices_(std::move(slices)), version_(version), speculative_update_(slices_.size()) {
  check(!slices_.empty(), "a server holds at least one slice");
}

void Shard::step(const wire::Message& message, ShardActions& out) {
  if (const auto* push = std::get_if<wire::Push>(&message)) return pushed(*push, out);
  if (const auto* update = std::get_if<wire::Apply>(&message)) return apply(*update, out);
  if (const auto* drop = std::get_if<wire::Discard>(&message)) return discard(drop->worker, drop->step, out);
  if (const auto* go = std::get_if<wire::Release>(&message)) return release(*go, out);
  if (const auto* one = std::get_if<wire::AlignmentTest>(&message)) {
    check(arrived_.contains({one->worker, one->step}), "a tested contribution is present");
    out.emplace_back(Compare{one->worker, one->step});
    return;
  }
  if (const auto* gone = std::get_if<wire::Forget>(&message)) return forget(gone->worker, out);
  if (std::holds_alternative<wire::Probe>(message)) out.emplace_back(ProveAlive{});
  if (const auto* wanted = std::get_if<wire::Export>(&message)) {
    check(wanted->version == version_, "an export is of the newest version");
    out.emplace_back(ExportNow{version_, wanted->state});
  }
}

void Shard::pushed(const wire::Push& push, ShardActions& out) {
  const auto slice = std::lower_bound(slices_.begin(), slices_.end(), push.slice);
  if (forgotten_.contains(push.worker) || slice == slices_.end() || *slice != push.slice) return;
  if (is_over(push)) return free(push.worker, push.step, out);
  PartialContribution& partial = arrived_[{push.worker, push.step}];
  partial.here.resize(slices_.size());
  auto here = partial.here[static_cast<std::size_t>(slice - slices_.begin())];
  if (here) return;  // duplicate
  here = true;
  ++partial.count;
  if (whole(partial)) out.emplace_back(Send{the_chief, wire::Gathered{server_, push.worker, push.step}});
}

void Shard::slice_arrived(const wire::Push& push, ShardActions& out) {
  const auto slice = std::lower_bound(slices_.begin(), slices_.end(), push.slice);
  check(slice != slices_.end() && *slice == push.slice, "a slice that arrives is one of this server");
  if (speculative_update_.arrived(push.worker, push.step, static_cast<std::size_t>(slice - slices_.begin())))
    out.emplace_back(Speculate{push.slice, speculative_update_.parts()});
}

void Shard::free(WorkerId worker, Step step, ShardActions& out) {
  speculative_update_.discarded(worker, step);
  out.emplace_back(Free{worker, step});
}

void Shard::apply(const wire::Apply& update, ShardActions& out) {
  check(update.version == version_.next(), "updates arrive in order, each once");
  for (const wire::Part& part : update.parts) {
    const auto found = arrived_.find({part.worker, part.step});
    check(found != arrived_.end() && whole(found->second), "an applied contribution is complete");
    arrived_.erase(found);
    end(part.worker, part.step);
    // Slices of an earlier step no longer arrive.
    unwanted_.erase(unwanted_.lower_bound({part.worker, Step{}}), unwanted_.lower_bound({part.worker, part.step}));
  }
  version_ = update.version;
  const bool speculated = speculative_update_.matches(update);
  const bool expects_next = speculative_update_.updated(update);
  out.emplace_back(Commit{update, speculated, expects_next});
}

void Shard::discard(WorkerId worker, Step step, ShardActions& out) {
  const auto found = arrived_.find({worker, step});
  const bool all_here = found != arrived_.end() && whole(found->second);
  if (!all_here && !forgotten_.contains(worker)) unwanted_.emplace(worker, step);
  end(worker, step);
  if (found == arrived_.end()) return;
  arrived_.erase(found);
  free(worker, step, out);
}

void Shard::release(const wire::Release& release, ShardActions& out) {
  const Snapshot snapshot = snapshot_for(release);
  const std::uint8_t bits = snapshot.bf16_transfer ? bf16_bits : snapshot.whole ? fp32_bits : release.pull_bits;
  out.emplace_back(snapshot);
  for (const SliceId slice : slices_)
    out.emplace_back(Send{peer(release.worker), wire::Pulled{release.worker, release.step, version_, slice, bits, snapshot.bf16_transfer}});
}

/// A class advances once per version. A worker that holds its last state gets the difference; any other worker the values.
Snapshot Shard::snapshot_for(const wire::Release& release) {
  Snapshot snapshot{release.worker, release.step, release.rho, release.pull_bits, release.pull_class, true, true, release.keep};
  if (release.pull_bits >= fp32_bits) {
    holds_.erase(release.worker);
    snapshot.bf16_transfer = release.bf16_transfer;
    return snapshot;
  }
  Class& one = classes_[release.pull_class];
  snapshot.first_of_class = one.moves == 0 || one.version != version_ || one.rho != release.rho;
  if (snapshot.first_of_class) one = {one.moves + 1, version_, release.rho};
  Holds& holds = holds_[release.worker];
  snapshot.whole = holds.pull_class != release.pull_class || holds.moves + 1 != one.moves || holds.moves == 0;
  holds = {release.pull_class, one.moves};
  return snapshot;
}

/// Complete contributions stay: the chief applies or discards them.
void Shard::forget(WorkerId worker, ShardActions& out) {
  forgotten_.insert(worker);
  holds_.erase(worker);
  ended_.erase(worker);
  unwanted_.erase(unwanted_.lower_bound({worker, Step{}}), unwanted_.lower_bound({WorkerId{worker.value + 1}, Step{}}));
  out.emplace_back(ForgetSent{worker});
  for (const wire::Part& part : speculative_update_.parts()) {
    const auto found = arrived_.find({part.worker, part.step});
    if (part.worker == worker && (found == arrived_.end() || !whole(found->second))) speculative_update_.discarded(worker, part.step);
  }
  for (auto it = arrived_.lower_bound({worker, Step{}}); it != arrived_.end() && it->first.first == worker;) {
    if (whole(it->second)) {
      ++it;
      continue;
    }
    out.emplace_back(Free{worker, it->first.second});
    it = arrived_.erase(it);
  }
}

}  // namespace motley::protocol
