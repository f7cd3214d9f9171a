#include "protocol/conductor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::protocol {
namespace {

constexpr double worth_it = 1.02;         // so much sooner a micro-batch must come out with a newcomer
constexpr std::uint32_t usual_look = 50;  // mini-batches, where the schedule itself does not look for another cut

}  // namespace

Conductor::Conductor(ConductorOptions options)
    : options_(std::move(options)), believed_(options_.problem), kept_(options_.first_mini), progress_(options_.step_limit) {
  check(plan::sound(options_.problem, options_.cut), "a pipeline holds every block once");
  check(options_.reschedule && options_.recut, "a conductor makes schedules and cuts anew");
}

void Conductor::step(Instant now, const ConductorEvent& event, ConductorActions& out) {
  if (finished_) return;
  const std::uint32_t generation_before = generation_;
  std::visit(match{[&](const DeviceCame& e) { came(e.device, out); }, [&](const DeviceGone& e) { gone(e.device, out); },
                   [&](const WaitedEnough&) {
                     if (!laid() && generation_ == 0) lay_out_present(Relaid::begins, out);
                   },
                   [&](const StageCommitted& e) { committed(now, e, out); },
                   [&](const ModelKept& e) {
                     progress_.moved(now);
                     kept(e.mini_batches, out);
                   },
                   [&](const StageDoing& e) { doing(now, e, out); }, [&](const Unattended& e) { progress_.unattended(e.time); },
                   [&](const StagesParted& e) {
                     if (laid() && e.generation == generation_) lay_out_present(Relaid::loss, out);
                   }},
             event);
  if (generation_ != generation_before) laid_at_ = now;
}

std::uint64_t Conductor::committed_by_all() const { return *std::min_element(committed_.begin(), committed_.end()); }

/// The planner sees those who are there, and nobody else.
std::optional<plan::Cut> Conductor::cut_for_present() const {
  if (present_.empty()) return std::nullopt;
  const std::vector<std::uint32_t> devices(present_.begin(), present_.end());
  plan::Problem problem = believed_;
  problem.devices.clear();
  problem.links.clear();
  for (const std::uint32_t from : devices) {
    problem.devices.push_back(believed_.devices[from]);
    auto& row = problem.links.emplace_back();
    for (const std::uint32_t to : devices) row.push_back(believed_.links[from][to]);
  }
  auto cut = options_.recut(problem);
  if (cut)
    for (plan::Stage& stage : *cut) stage.device = devices[stage.device];
  return cut;
}

void Conductor::came(std::uint32_t device, ConductorActions& out) {
  if (device >= options_.problem.devices.size() || !present_.insert(device).second) return;
  if (laid()) {
    newcomer_ = true;
    return;
  }
  if (generation_ > 0) return lay_out_present(Relaid::loss, out);
  const bool all =
      std::all_of(options_.cut.begin(), options_.cut.end(), [&](const plan::Stage& stage) { return present_.contains(stage.device); });
  if (all) lay_out(options_.cut, Relaid::begins, out);
}

void Conductor::gone(std::uint32_t device, ConductorActions& out) {
  if (present_.erase(device) == 0) return;
  believed_.devices[device] = options_.problem.devices[device];  // whoever comes in its place is measured anew
  const auto names_it = [&](const plan::Cut& cut) {
    return std::any_of(cut.begin(), cut.end(), [&](const plan::Stage& stage) { return stage.device == device; });
  };
  if (wanted_ && wanted_->cut && names_it(*wanted_->cut)) wanted_->cut.reset();
  if (names_it(cut_)) lay_out_present(Relaid::loss, out);
}

void Conductor::committed(Instant now, const StageCommitted& said, ConductorActions& out) {
  if (!laid() || said.generation != generation_ || said.stage >= committed_.size()) return;
  const std::uint64_t before = committed_by_all();
  if (said.mini_batches <= committed_[said.stage] || said.mini_batches > allowed_) return;
  const Measured measured = believed(now, said);
  committed_[said.stage] = said.mini_batches;
  progress_.committed(now, said.stage);
  for (Measured* sum : {&believed_since_[said.stage], &measured_[said.stage]}) {
    sum->busy_s += measured.busy_s;
    sum->micro_batches += measured.micro_batches;
  }
  const std::uint64_t after = committed_by_all();
  for (std::uint64_t n = before + 1; n <= after; ++n) {
    out.emplace_back(CommittedByAll{n});
    look(n, out);
  }
  if (handed_in_ > kept_) kept(handed_in_, out);
}

/// Nothing, where what it says is no time.
Conductor::Measured Conductor::believed(Instant now, const StageCommitted& said) const {
  if (!(said.busy_s >= 0)) return {};
  const Measured& before = believed_since_[said.stage];
  const double possible_s = std::max(0.0, seconds(now - laid_at_) - before.busy_s);
  const std::uint64_t possible = schedule_.micro_batches * (allowed_ - laid_from_) - before.micro_batches;
  return {std::min(said.busy_s, possible_s), std::min(said.micro_batches, possible)};
}

void Conductor::doing(Instant now, const StageDoing& said, ConductorActions& out) {
  if (!laid() || said.generation != generation_ || said.stage >= cut_.size()) return;
  if (said.slices_moved) progress_.moved(now);
  if (const auto late = progress_.doing(now, said.stage, said.done, said.busy)) {
    const std::uint32_t device = cut_[said.stage].device;
    out.emplace_back(StageExpelled{said.stage, device, late->took, late->longest});
    announced_.erase(said.stage);  // until a layout has it again
    gone(device, out);
  } else if (const auto still = progress_.nobody_moves(now)) {
    out.emplace_back(NobodyMoves{*still});
    lay_out_present(Relaid::loss, out);
  }
}

void Conductor::look(std::uint64_t done, ConductorActions& out) {
  if (wanted_ || done == options_.mini_batches) return;  // what is kept decides
  const std::uint32_t every = schedule_.replan_every > 0 ? schedule_.replan_every : usual_look;
  if (done % every == 0 && wants_another_cut()) {
    out.emplace_back(AllowMore{allowed_, true});
    return;
  }
  allowed_ = std::min(options_.mini_batches, done + schedule_.ahead + 2);
  out.emplace_back(AllowMore{allowed_, false});
}

bool Conductor::wants_another_cut() {
  if (newcomer_) {
    newcomer_ = false;
    const auto with_it = cut_for_present();
    const auto slot = [&](const plan::Cut& cut) { return plan::cost_of(believed_, cut).slot_s; };
    if (with_it && worth_it * slot(*with_it) < slot(cut_)) {
      wanted_ = Wanted{std::nullopt, Relaid::newcomer};
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
  const auto better = plan::replan(believed_, cut_, stage_s);
  if (!better) return false;
  // It may name devices that are not there.
  const bool there =
      std::all_of(better->cut.begin(), better->cut.end(), [&](const plan::Stage& stage) { return present_.contains(stage.device); });
  believed_ = better->problem;
  wanted_ = Wanted{there ? std::optional(better->cut) : std::nullopt, Relaid::unevenness};
  return true;
}

void Conductor::kept(std::uint64_t mini_batches, ConductorActions& out) {
  if (!laid() || mini_batches <= kept_) return;
  handed_in_ = std::max(handed_in_, mini_batches);
  if (mini_batches > committed_by_all()) return;
  kept_ = mini_batches;
  if (kept_ == options_.mini_batches) {
    finished_ = true;
    out.emplace_back(PipelineDone{});
  } else if (wanted_ && kept_ == allowed_) {
    const Wanted wanted = *wanted_;
    if (wanted.cut)
      lay_out(*wanted.cut, wanted.why, out);
    else
      lay_out_present(wanted.why, out);
  }
}

void Conductor::lay_out_present(Relaid why, ConductorActions& out) {
  if (auto cut = cut_for_present()) return lay_out(std::move(*cut), why, out);
  cut_.clear();
  wanted_.reset();
  handed_in_ = kept_;
  ++generation_;
  out.emplace_back(StandsStill{});
}

void Conductor::lay_out(plan::Cut cut, Relaid why, ConductorActions& out) {
  if (kept_ >= options_.mini_batches) {  // a checkpoint had them all
    finished_ = true;
    out.emplace_back(PipelineDone{});
    return;
  }
  cut_ = std::move(cut);
  schedule_ = options_.reschedule(believed_, cut_);
  wanted_.reset();
  handed_in_ = kept_;
  newcomer_ = false;
  ++generation_;
  committed_.assign(cut_.size(), kept_);
  measured_.assign(cut_.size(), {});
  believed_since_.assign(cut_.size(), {});
  laid_from_ = kept_;
  progress_.begin(cut_.size());
  allowed_ = std::min(options_.mini_batches, kept_ + schedule_.ahead + 2);
  if (!std::exchange(has_begun_, true)) why = Relaid::begins;  // whoever was there before could not hold the model
  std::vector<std::uint32_t> joined;
  for (std::uint32_t s = 0; s < cut_.size(); ++s)
    if (announced_.insert(s).second) joined.push_back(s);
  out.emplace_back(LayOut{generation_, cut_, schedule_, kept_, allowed_, why, std::move(joined)});
}

}  // namespace motley::protocol
