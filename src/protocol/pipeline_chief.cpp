#include "protocol/pipeline_chief.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::protocol {
namespace {

constexpr double minimum_speedup = 1.02;                 // required speed-up per micro-batch for adding a new device
constexpr std::uint32_t default_comparison_period = 50;  // mini-batches between comparisons, for schedules that do not set their own

}  // namespace

PipelineChief::PipelineChief(PipelineChiefOptions options)
    : options_(std::move(options)), estimated_(options_.problem), kept_(options_.first_mini), progress_(options_.step_limit) {
  check(pipeline::is_valid_cut(options_.problem, options_.cut), "a pipeline holds every block once");
  check(options_.reschedule && options_.repartition, "a pipeline chief can make schedules and cuts");
}

void PipelineChief::step(Instant now, const PipelineChiefEvent& event, PipelineChiefActions& out) {
  if (finished_) return;
  const std::uint32_t generation_before = generation_;
  std::visit(match{[&](const DeviceJoined& e) { came(e.device, out); }, [&](const DeviceLost& e) { gone(e.device, out); },
                   [&](const StartTimeout&) {
                     if (!assigned() && generation_ == 0) assign_present(AssignReason::begins, out);
                   },
                   [&](const StageCommitted& e) { committed(now, e, out); },
                   [&](const ModelSnapshotComplete& e) {
                     progress_.moved(now);
                     kept(e.mini_batches, out);
                   },
                   [&](const StageReported& e) { status(now, e, out); }, [&](const DriverPaused& e) { progress_.driver_paused(e.time); },
                   [&](const StagesDisconnected& e) {
                     if (assigned() && e.generation == generation_) assign_present(AssignReason::loss, out);
                   }},
             event);
  if (generation_ != generation_before) assigned_at_ = now;
}

std::uint64_t PipelineChief::committed_by_all() const { return *std::min_element(committed_.begin(), committed_.end()); }

/// The planner sees only the present devices.
std::optional<pipeline::Cut> PipelineChief::cut_for_present() const {
  if (present_.empty()) return std::nullopt;
  const std::vector<std::uint32_t> devices(present_.begin(), present_.end());
  pipeline::Problem problem = estimated_;
  problem.devices.clear();
  problem.links.clear();
  for (const std::uint32_t from : devices) {
    problem.devices.push_back(estimated_.devices[from]);
    auto& row = problem.links.emplace_back();
    for (const std::uint32_t to : devices) row.push_back(estimated_.links[from][to]);
  }
  auto cut = options_.repartition(problem);
  if (cut)
    for (pipeline::Stage& stage : *cut) stage.device = devices[stage.device];
  return cut;
}

void PipelineChief::came(std::uint32_t device, PipelineChiefActions& out) {
  if (device >= options_.problem.devices.size() || !present_.insert(device).second) return;
  if (assigned()) {
    device_joined_ = true;
    return;
  }
  if (generation_ > 0) return assign_present(AssignReason::loss, out);
  const bool all =
      std::all_of(options_.cut.begin(), options_.cut.end(), [&](const pipeline::Stage& stage) { return present_.contains(stage.device); });
  if (all) assign_stages(options_.cut, AssignReason::begins, out);
}

void PipelineChief::gone(std::uint32_t device, PipelineChiefActions& out) {
  if (present_.erase(device) == 0) return;
  estimated_.devices[device] = options_.problem.devices[device];  // a device that takes its place is measured again
  const auto names_it = [&](const pipeline::Cut& cut) {
    return std::any_of(cut.begin(), cut.end(), [&](const pipeline::Stage& stage) { return stage.device == device; });
  };
  if (wanted_ && wanted_->cut && names_it(*wanted_->cut)) wanted_->cut.reset();
  if (names_it(cut_)) assign_present(AssignReason::loss, out);
}

void PipelineChief::committed(Instant now, const StageCommitted& reported, PipelineChiefActions& out) {
  if (!assigned() || reported.generation != generation_ || reported.stage >= committed_.size()) return;
  const std::uint64_t before = committed_by_all();
  if (reported.mini_batches <= committed_[reported.stage] || reported.mini_batches > allowed_) return;
  const Measured measured = plausible(now, reported);
  committed_[reported.stage] = reported.mini_batches;
  progress_.committed(now, reported.stage);
  for (Measured* sum : {&measured_since_[reported.stage], &measured_[reported.stage]}) {
    sum->busy_s += measured.busy_s;
    sum->micro_batches += measured.micro_batches;
  }
  const std::uint64_t after = committed_by_all();
  for (std::uint64_t n = before + 1; n <= after; ++n) {
    out.emplace_back(CommittedByAll{n});
    look(n, out);
  }
  if (state_submitted_ > kept_) kept(state_submitted_, out);
}

/// Nothing when the reported time is not plausible.
PipelineChief::Measured PipelineChief::plausible(Instant now, const StageCommitted& reported) const {
  if (!(reported.busy_s >= 0)) return {};
  const Measured& before = measured_since_[reported.stage];
  const double possible_s = std::max(0.0, seconds(now - assigned_at_) - before.busy_s);
  const std::uint64_t possible = schedule_.micro_batches * (allowed_ - assigned_from_) - before.micro_batches;
  return {std::min(reported.busy_s, possible_s), std::min(reported.micro_batches, possible)};
}

void PipelineChief::status(Instant now, const StageReported& reported, PipelineChiefActions& out) {
  if (!assigned() || reported.generation != generation_ || reported.stage >= cut_.size()) return;
  if (reported.slices_moved) progress_.moved(now);
  if (const auto late = progress_.status(now, reported.stage, reported.done, reported.busy)) {
    const std::uint32_t device = cut_[reported.stage].device;
    out.emplace_back(StageExpelled{reported.stage, device, late->took, late->longest});
    announced_.erase(reported.stage);  // until it is assigned again
    gone(device, out);
  } else if (const auto still = progress_.no_progress(now)) {
    out.emplace_back(NoProgress{*still});
    assign_present(AssignReason::loss, out);
  }
}

void PipelineChief::look(std::uint64_t done, PipelineChiefActions& out) {
  if (wanted_ || done == options_.mini_batches) return;  // the saved model decides
  const std::uint32_t every = schedule_.replan_every > 0 ? schedule_.replan_every : default_comparison_period;
  if (done % every == 0 && wants_another_cut()) {
    out.emplace_back(AllowMore{allowed_, true});
    return;
  }
  allowed_ = std::min(options_.mini_batches, done + schedule_.ahead + 2);
  out.emplace_back(AllowMore{allowed_, false});
}

bool PipelineChief::wants_another_cut() {
  if (device_joined_) {
    device_joined_ = false;
    const auto with_it = cut_for_present();
    const auto slot = [&](const pipeline::Cut& cut) { return pipeline::cost_of(estimated_, cut).slot_s; };
    if (with_it && minimum_speedup * slot(*with_it) < slot(cut_)) {
      wanted_ = PendingCut{std::nullopt, AssignReason::device_joined};
      return true;
    }
  }
  std::vector<double> stage_s;
  bool all_measured = true;
  for (Measured& measured : measured_) {
    all_measured = all_measured && measured.micro_batches > 0;
    stage_s.push_back(all_measured ? measured.busy_s / static_cast<double>(measured.micro_batches) : 0);
    measured = {};
  }
  if (schedule_.replan_every == 0 || !all_measured) return false;
  const auto better = pipeline::replan(estimated_, cut_, stage_s);
  if (!better) return false;
  // It may contain devices that have left.
  const bool there =
      std::all_of(better->cut.begin(), better->cut.end(), [&](const pipeline::Stage& stage) { return present_.contains(stage.device); });
  estimated_ = better->problem;
  wanted_ = PendingCut{there ? std::optional(better->cut) : std::nullopt, AssignReason::unevenness};
  return true;
}

void PipelineChief::kept(std::uint64_t mini_batches, PipelineChiefActions& out) {
  if (!assigned() || mini_batches <= kept_) return;
  state_submitted_ = std::max(state_submitted_, mini_batches);
  if (mini_batches > committed_by_all()) return;
  kept_ = mini_batches;
  if (kept_ == options_.mini_batches) {
    finished_ = true;
    out.emplace_back(PipelineDone{});
  } else if (wanted_ && kept_ == allowed_) {
    const PendingCut wanted = *wanted_;
    if (wanted.cut)
      assign_stages(*wanted.cut, wanted.why, out);
    else
      assign_present(wanted.why, out);
  }
}

void PipelineChief::assign_present(AssignReason why, PipelineChiefActions& out) {
  if (auto cut = cut_for_present()) return assign_stages(std::move(*cut), why, out);
  cut_.clear();
  wanted_.reset();
  state_submitted_ = kept_;
  ++generation_;
  out.emplace_back(NotEnoughDevices{});
}

void PipelineChief::assign_stages(pipeline::Cut cut, AssignReason why, PipelineChiefActions& out) {
  if (kept_ >= options_.mini_batches) {  // a checkpoint had all mini-batches
    finished_ = true;
    out.emplace_back(PipelineDone{});
    return;
  }
  cut_ = std::move(cut);
  schedule_ = options_.reschedule(estimated_, cut_);
  wanted_.reset();
  state_submitted_ = kept_;
  device_joined_ = false;
  ++generation_;
  committed_.assign(cut_.size(), kept_);
  measured_.assign(cut_.size(), {});
  measured_since_.assign(cut_.size(), {});
  assigned_from_ = kept_;
  progress_.begin(cut_.size());
  allowed_ = std::min(options_.mini_batches, kept_ + schedule_.ahead + 2);
  if (!std::exchange(has_begun_, true)) why = AssignReason::begins;  // earlier devices could not hold the model
  std::vector<std::uint32_t> joined;
  for (std::uint32_t s = 0; s < cut_.size(); ++s)
    if (announced_.insert(s).second) joined.push_back(s);
  out.emplace_back(AssignStages{generation_, cut_, schedule_, kept_, allowed_, why, std::move(joined)});
}

}  // namespace motley::protocol
