#include "runtime/snapshot_cache.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"

namespace motley::runtime {

SnapshotCache::SnapshotCache(const store::Layout& layout, ServerId server, Version version, StoreThread& store_thread, OnReady on_ready)
    : layout_(layout), server_(server), version_(version), store_thread_(store_thread), on_ready_(std::move(on_ready)) {}

SnapshotKey SnapshotCache::key_of(const protocol::Snapshot& request) const {
  if (request.bits == fp32_bits) return {version_, {request.rho, request.bf16_transfer}};
  return {version_, request.rho, request.bits, request.pull_class, request.whole};
}

SharedSnapshot SnapshotCache::find_or_make(const protocol::Snapshot& request) {
  const SnapshotKey key = key_of(request);
  Entry& entry = entries_.try_emplace(key, Entry{false, {}}).first->second;
  if (entry.being_made) return nullptr;
  if (SharedSnapshot found = entry.snapshot.lock()) return found;
  if (written_by_update_ && written_by_update_->key == key) {
    entry.snapshot = written_by_update_->snapshot;
    return written_by_update_->snapshot;
  }
  entry = {};
  make(request, key);
  return nullptr;
}

void SnapshotCache::make(const protocol::Snapshot& request, const SnapshotKey& key) {
  store_thread_.run(
      [&pool = store_thread_.pool(), shadows = shadows_, request, key, server = server_, layout = layout_](store::ShardStore& store) {
        auto snapshot = std::make_shared<Snapshot>();
        auto flat = make_shareable_buffer(layout.values);
        if (request.bits == fp32_bits) {
          snapshot->bf16_transfer = key.format.bf16_transfer;
          store.snapshot(key.format, flat->floats());
        } else {
          store::PullShadow& shadow = shadows->try_emplace(request.pull_class, layout, server, pool).first->second;
          if (request.first_of_class) {
            store.snapshot(request.rho, flat->floats());
            shadow.move_to(flat->floats(), request.bits);
          }
          if (request.whole)
            shadow.values(flat->floats());
          else
            for (const SliceId id : layout.of(server)) snapshot->coded[id] = shadow.change(id);
        }
        if (request.whole) snapshot->flat = std::move(flat);
        return snapshot;
      },
      [this, key](const SharedSnapshot& snapshot) { ready(key, snapshot); });
}

void SnapshotCache::ready(const SnapshotKey& key, const SharedSnapshot& snapshot) {
  if (key.version == version_) entries_[key] = {false, snapshot};
  on_ready_(key, snapshot);
}

void SnapshotCache::begin_version(Version version, std::optional<UpdateSnapshot> written) {
  version_ = version;
  entries_.clear();
  written_by_update_ = std::move(written);
}

void SnapshotCache::note_format(const protocol::Snapshot& request) {
  last_rho_ = request.rho;
  if (request.bf16_transfer)
    bf16_workers_.insert(request.worker);
  else
    bf16_workers_.erase(request.worker);
}

store::SnapshotFormat SnapshotCache::predicted_format(const wire::Apply& update) const {
  const auto pulls_bf16 = [&](const wire::Part& part) { return bf16_workers_.contains(part.worker); };
  return {last_rho_, std::any_of(update.parts.begin(), update.parts.end(), pulls_bf16)};
}

}  // namespace motley::runtime
