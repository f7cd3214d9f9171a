#include "run/shard_host.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::run {
namespace {

constexpr std::uint8_t plain = 32;  // bits of a float as it lies in memory

/// Of `asked` threads, or as many as help with so many values.
std::shared_ptr<store::Team> make_team(std::size_t asked, const store::Layout& layout, std::span<const SliceId> slices) {
  std::size_t values = 0;
  for (const SliceId id : slices) values += layout[id].count;
  return std::make_shared<store::Team>(asked > 0 ? asked : store::useful_threads(values, std::thread::hardware_concurrency()));
}

std::unique_ptr<codec::Codec> codec_of(int bits) {
  auto made = codec::make(bits);
  check(made.ok(), "a strategy asks for bits that there is a codec for");
  return std::move(*made);
}

}  // namespace

std::span<const std::byte> ShardHost::Snapshot::payload(const store::Layout& layout, SliceId slice) const {
  if (const auto found = coded.find(slice); found != coded.end()) return found->second;
  return std::as_const(*flat).bytes(layout[slice].offset, layout[slice].count);
}

ShardHost::ShardHost(boost::asio::io_context& pump, ServerId server, const store::Layout& layout, const store::OptimizerSpec& optimizer,
                     const Beginning& beginning, ShardOwner& owner, std::size_t threads)
    : pump_(pump),
      layout_(layout),
      server_(server),
      slices_(layout.of(server)),
      owner_(owner),
      machine_(server, slices_, beginning.version),
      foresight_(layout.slices.size()),
      alive_(std::make_shared<bool>(true)),
      team_(make_team(threads, layout, slices_)),
      store_(std::make_shared<store::ShardStore>(layout, server, optimizer, beginning.values, store::Means{team_})),
      shadows_(std::make_shared<Shadows>()) {
  if (beginning.moments) store_->restore(*beginning.moments, beginning.version);
}

ShardHost::~ShardHost() { *alive_ = false; }

void ShardHost::hear(const wire::Message& message) {
  if (const auto* gone = std::get_if<wire::Forget>(&message)) {
    gone_.insert(gone->worker);
    pulls_.erase(gone->worker);
    attached_.erase(gone->worker);
  }
  protocol::ShardActions actions;
  machine_.step(message, actions);
  for (const auto& action : actions) carry_out(action);
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
                       owner_.to_chief(send.message);
                     }
                   },
                   [&](const protocol::Commit& c) { commit(c.update); },
                   [&](const protocol::Free& f) {
                     foresight_.lost(f.worker, f.step);
                     contributions_.erase({f.worker, f.step});
                     kept_.erase({f.worker, f.step});
                   },
                   [&](const protocol::Snapshot& s) {
                     snapshotting_ = s;
                     if (s.bits == plain) last_rho_ = s.rho;
                     if (s.keep) store_thread_.post([store = store_, s] { store->keep({s.worker, s.step}, s.rho); });
                   },
                   [&](const protocol::Compare& c) { compare(c); },
                   [&](const protocol::ForgetSent& f) { store_thread_.post([store = store_, f] { store->forget(f.worker); }); },
                   [&](const protocol::ExportNow& e) { export_now(e); }},
             action);
}

// Numbers, on their thread ---------------------------------------------------------------------------------------------------------------

void ShardHost::commit(const wire::Apply& update) {
  std::vector<SharedBuffer> parts;
  for (const wire::Part& part : update.parts) {
    const auto found = contributions_.find({part.worker, part.step});
    check(found != contributions_.end(), "what is committed is here");
    parts.push_back(std::move(found->second));
    kept_.erase(found->first);
    contributions_.erase(found);
  }
  snapshots_.clear();  // of an older version now
  decode_waiting();
  const bool foreseen = foresight_.right(update);
  prepared_ = foreseen ? std::exchange(expected_, std::nullopt) : std::nullopt;
  store_thread_.post([store = store_, update, foreseen, parts = std::move(parts), snapshot = prepared_] {  // which it writes to
    if (foreseen)
      store->commit(weighted(update.parts, parts));
    else
      store->apply({update.kind, update.rate, update.momentum, update.share, update.compensation}, weighted(update.parts, parts));
  });
  foresee(update);
}

std::vector<store::WeightedPart> ShardHost::weighted(const std::vector<wire::Part>& parts, const std::vector<SharedBuffer>& buffers) {
  std::vector<store::WeightedPart> weighted;
  for (std::size_t i = 0; i < parts.size(); ++i)
    weighted.push_back({std::as_const(*buffers[i]).floats(), parts[i].weight, {parts[i].worker, parts[i].parameters}});
  return weighted;
}

/// What may come after this one.
void ShardHost::foresee(const wire::Apply& update) {
  expected_.reset();
  complete_.clear();
  if (!foresight_.made(update)) return;
  expected_ = Prepared{{update.version.next(), last_rho_}, make_lendable_buffer(layout_.values)};
  store_thread_.post([store = store_, update, rho = last_rho_, flat = expected_->flat] {
    store->foresee({update.kind, update.rate, update.momentum, update.share}, rho, flat->floats());
  });
}

/// Of the update that is expected, this slice may be here from everybody now.
void ShardHost::prepare(const wire::Push& push) {
  if (!foresight_.arrived(push.worker, push.step, push.slice)) return;
  complete_.push_back(push.slice);
  if (!preparing_) prepare_waiting();
}

/// Slices that become complete while others are being prepared gather, and are then prepared side by side.
void ShardHost::prepare_waiting() {
  if (complete_.empty()) return;
  std::vector<SharedBuffer> buffers;
  for (const wire::Part& part : foresight_.parts()) {
    const auto found = contributions_.find({part.worker, part.step});
    if (found == contributions_.end()) return complete_.clear();  // it was lost: nothing like this will come
    buffers.push_back(found->second);
  }
  preparing_ = true;
  decode_waiting();
  store_thread_.post([this, alive = alive_, store = store_, parts = foresight_.parts(), buffers = std::move(buffers),
                      flat = expected_->flat, slices = std::exchange(complete_, {})] {
    store->prepare(weighted(parts, buffers), slices);
    boost::asio::post(pump_, [this, alive] {
      if (!*alive) return;
      preparing_ = false;
      prepare_waiting();
    });
  });
}

void ShardHost::compare(const protocol::Compare& which) {
  const auto found = contributions_.find({which.worker, which.step});
  check(found != contributions_.end(), "what is compared is here");
  decode_waiting();
  store_thread_.post([this, alive = alive_, store = store_, which, part = found->second] {
    const double along = store->along(std::as_const(*part).floats());
    boost::asio::post(pump_, [this, alive, which, along] {
      if (*alive) owner_.to_chief(wire::Judged{server_, which.worker, which.step, along});
    });
  });
}

ShardHost::SnapshotKey ShardHost::key_of(const protocol::Snapshot& wanted, Version version) {
  if (wanted.bits == plain) return {version, wanted.rho};
  return {version, wanted.rho, wanted.bits, wanted.pull_class, wanted.whole};
}

void ShardHost::make_snapshot(const protocol::Snapshot& wanted, const SnapshotKey& key) {
  const auto [entry, fresh] = snapshots_.try_emplace(key);
  if (!fresh && (entry->second.being_made || !entry->second.snapshot.expired())) return;
  entry->second = {};
  if (prepared_ && prepared_->key == key) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->flat = prepared_->flat;
    store_thread_.post([this, alive = alive_, key, snapshot = std::move(snapshot)] {  // where the update that it goes with is made
      boost::asio::post(pump_, [this, alive, key, snapshot] {
        if (*alive) snapshot_ready(key, snapshot);
      });
    });
    return;
  }
  store_thread_.post(
      [this, alive = alive_, store = store_, shadows = shadows_, team = team_, wanted, key, server = server_, layout = layout_] {
        auto snapshot = std::make_shared<Snapshot>();
        auto flat = make_lendable_buffer(layout.values);
        if (wanted.bits == plain) {
          store->snapshot(wanted.rho, flat->floats());
        } else {
          store::PullShadow& shadow = shadows->try_emplace(wanted.pull_class, layout, server, team).first->second;
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
        boost::asio::post(pump_, [this, alive, key, ready = SharedSnapshot(std::move(snapshot))] {
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
  store_thread_.post([this, alive = alive_, store = store_, wanted, values = layout_.values] {
    auto out = std::make_shared<Exported>();
    out->version = wanted.version;
    out->values = make_buffer(values);
    store->values(out->values->floats());
    if (wanted.state) store->moments(out->moments.emplace());
    boost::asio::post(pump_, [this, alive, out] {
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
  std::erase_if(landings_, [&](const auto& entry) { return entry.second.from == &connection; });
  std::erase_if(under_way_, [&](const auto& entry) { return entry.second.through == &connection; });
}

void ShardHost::send_ready(WorkerId worker) {
  const auto connection = attached_.find(worker);
  const auto found = pulls_.find(worker);
  if (connection == attached_.end() || found == pulls_.end()) return;
  auto& pulls = found->second;
  while (!pulls.empty() && pulls.front().snapshot) {
    const SharedSnapshot& snapshot = pulls.front().snapshot;
    for (const wire::Pulled& slice : pulls.front().slices) {
      const std::span<const std::byte> payload = snapshot->payload(layout_, slice.slice);
      under_way_[next_ticket_] = {snapshot, connection->second};
      connection->second->send(transport::Parcel{slice, payload, layout_[slice.slice].priority, next_ticket_++, /*lend=*/true});
      bytes_pulled_ += payload.size();
    }
    pulls.erase(pulls.begin());
  }
  if (pulls.empty()) pulls_.erase(found);
}

void ShardHost::sent(std::uint64_t ticket) { under_way_.erase(ticket); }

// Slices in ------------------------------------------------------------------------------------------------------------------------------

std::span<std::byte> ShardHost::room(const transport::Connection& from, const wire::Push& push, std::size_t bytes) {
  if (push.slice.value >= layout_.slices.size() || layout_[push.slice].server != server_) return {};  // not ours: refused
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  auto& codec = codecs_[bits];
  if (!codec) {
    auto made = codec::make(bits);
    if (!made.ok()) return {};
    codec = std::move(*made);
  }
  if (codec->encoded_bytes(slice.count) != bytes) return {};
  const bool gone = gone_.contains(push.worker);
  if (!gone && !may_push(from, push.worker)) return {};
  Landing& landing = landings_[{push.worker, push.step, push.slice}];
  landing.from = &from;
  if (!gone) {
    landing.flat = own({push.worker, push.step});
    if (bits == plain) return landing.flat->bytes(slice.offset, slice.count);
  }
  landing.bytes.resize(bytes);
  return landing.bytes;
}

bool ShardHost::may_push(const transport::Connection& from, WorkerId worker) const {
  const auto owner = attached_.find(worker);
  return owner != attached_.end() && owner->second == &from;
}

/// The buffer of a contribution, to write to. What was borrowed for it so far is copied.
SharedBuffer ShardHost::own(const ContributionKey& contribution) {
  const auto found = contributions_.find(contribution);
  if (found == contributions_.end()) return make_buffer(layout_.values);
  if (!found->second->borrowed()) return found->second;
  SharedBuffer copy = make_buffer(layout_.values);
  for (const SliceId id : kept_[contribution]) {
    const auto from = std::as_const(*found->second).bytes(layout_[id].offset, layout_[id].count);
    std::copy(from.begin(), from.end(), copy->bytes(layout_[id].offset, layout_[id].count).begin());
  }
  kept_.erase(contribution);
  return found->second = std::move(copy);
}

bool ShardHost::keep(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                     const transport::Loan& loan) {
  if (push.slice.value >= layout_.slices.size() || layout_[push.slice].server != server_) return false;
  const store::Slice& slice = layout_[push.slice];
  if (slice.bits(push.bits) != plain || payload.size() != slice.count * sizeof(float)) return false;
  if (gone_.contains(push.worker) || !may_push(from, push.worker)) return false;
  const ContributionKey key{push.worker, push.step};
  const float* flat = Buffer::beginning(payload, slice.offset);
  const auto [found, fresh] = contributions_.try_emplace(key);
  if (fresh) found->second = std::make_shared<Buffer>(flat, layout_.values);
  if (!found->second->borrowed() || found->second->floats().data() != flat) return false;
  found->second->add(loan);
  kept_[key].push_back(push.slice);
  bytes_pushed_ += payload.size();
  prepare(push);
  hear(push);
  return true;
}

void ShardHost::received(const wire::Push& push) {
  auto landed = landings_.extract({push.worker, push.step, push.slice});
  if (landed.empty() || gone_.contains(push.worker)) return;
  Landing& landing = landed.mapped();
  contributions_[{push.worker, push.step}] = landing.flat;
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  if (bits == plain) {
    bytes_pushed_ += slice.count * sizeof(float);
  } else {
    bytes_pushed_ += landing.bytes.size();
    decode({std::move(landing.flat), slice, bits, std::move(landing.bytes)});
  }
  prepare(push);
  hear(push);
}

/// Slices that come faster than one thread decodes them gather while it does, and are then decoded side by side.
void ShardHost::decode(Coded coded) {
  const auto same = std::find_if(coded_.begin(), coded_.end(), [&](const Coded& waiting) {
    return waiting.flat == coded.flat && waiting.slice.offset == coded.slice.offset;
  });
  if (same != coded_.end())
    *same = std::move(coded);  // somebody has pushed it twice, and two threads must not write to one place
  else
    coded_.push_back(std::move(coded));
  if (!decoding_) decode_waiting();
}

void ShardHost::decode_waiting() {
  if (coded_.empty()) return;
  decoding_ = true;
  store_thread_.post([this, alive = alive_, team = team_, batch = std::exchange(coded_, {})] {
    team->each(batch.size(), [&](std::size_t i) {
      const Coded& coded = batch[i];
      const Outcome decoded =
          codec_of(coded.bits)->decode(coded.bytes, coded.flat->floats().subspan(coded.slice.offset, coded.slice.count));
      check(decoded.ok(), "a payload's size was checked when it was announced");
    });
    boost::asio::post(pump_, [this, alive] {
      if (!*alive) return;
      decoding_ = false;
      decode_waiting();
    });
  });
}

}  // namespace motley::run
