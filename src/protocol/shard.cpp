#include "protocol/shard.h"

#include <algorithm>

#include "base/check.h"

namespace motley::protocol {

Shard::Shard(ServerId server, std::vector<SliceId> slices, Version version)
    : server_(server), slices_(std::move(slices)), version_(version) {
  check(!slices_.empty(), "a server holds at least one slice");
}

void Shard::step(const wire::Message& message, ShardActions& out) {
  if (const auto* push = std::get_if<wire::Push>(&message)) return pushed(*push, out);
  if (const auto* update = std::get_if<wire::Apply>(&message)) return apply(*update, out);
  if (const auto* drop = std::get_if<wire::Discard>(&message)) return discard(drop->worker, drop->step, out);
  if (const auto* go = std::get_if<wire::Release>(&message)) return release(*go, out);
  if (const auto* gone = std::get_if<wire::Forget>(&message)) return forget(gone->worker, out);
  if (const auto* wanted = std::get_if<wire::Export>(&message)) {
    check(wanted->version == version_, "an export asks for the newest version");
    out.emplace_back(ExportNow{version_, wanted->state});
  }
}

void Shard::pushed(const wire::Push& push, ShardActions& out) {
  const auto slice = std::lower_bound(slices_.begin(), slices_.end(), push.slice);
  if (forgotten_.contains(push.worker) || slice == slices_.end() || *slice != push.slice) return;
  Arrival& arrival = arrived_[{push.worker, push.step}];
  arrival.here.resize(slices_.size());
  auto here = arrival.here[static_cast<std::size_t>(slice - slices_.begin())];
  if (here) return;  // said twice
  here = true;
  ++arrival.count;
  if (whole(arrival)) out.emplace_back(Send{the_chief, wire::Gathered{server_, push.worker, push.step}});
}

void Shard::apply(const wire::Apply& update, ShardActions& out) {
  check(update.version == version_.next(), "updates come in order, each once");
  for (const wire::Part& part : update.parts) {
    const auto found = arrived_.find({part.worker, part.step});
    check(found != arrived_.end() && whole(found->second), "what is applied is here whole");
    arrived_.erase(found);
  }
  version_ = update.version;
  out.emplace_back(Commit{update});
}

void Shard::discard(WorkerId worker, Step step, ShardActions& out) {
  if (arrived_.erase({worker, step}) > 0) out.emplace_back(Free{worker, step});
}

void Shard::release(const wire::Release& release, ShardActions& out) {
  out.emplace_back(Snapshot{release.worker, release.step, release.rho});
  for (const SliceId slice : slices_)
    out.emplace_back(Send{peer(release.worker), wire::Pulled{release.worker, release.step, version_, slice, release.pull_bits}});
}

/// What is gathered whole stays: the chief applies it, or discards it by name.
void Shard::forget(WorkerId worker, ShardActions& out) {
  forgotten_.insert(worker);
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
