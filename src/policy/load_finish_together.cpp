#include "policy/load_finish_together.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::policy {
namespace {

constexpr double dead_band = 0.05;
constexpr double worth_it = 1.005;         // times sooner, for new sizes, where steps are steady
constexpr double worth_it_uneven = 1.02;   // where they are not
constexpr double down_payment = 0.5;       // of their price: what staying has cost when they are bought; training is long
constexpr double forgiven = 0.9;           // of what staying has cost stays when for once it costs nothing: times are noisy
constexpr double newest = 0.1;             // of what was later than foretold
constexpr double most_later = 0.3;         // of a step
constexpr double most_fixed = 0.5;         // of a step that is done at once is taken for overhead: times of few sizes tell it badly
constexpr double steady = 0.02;            // jitter up to this
constexpr double surprise = 1.2;           // of the planned time, on a steady cluster
constexpr double spare_per_jitter = 3;     // standard deviations
constexpr double most_spare = 0.5;         // of the batch
constexpr std::uint32_t micro_tasks = 16;  // of a batch

}  // namespace

void LoadFinishTogether::joined(std::span<const Newcomer> newcomers) {
  crew_.join(newcomers);
  start_over();
}

void LoadFinishTogether::left(WorkerId worker) {
  crew_.leave(worker);
  start_over();
}

void LoadFinishTogether::restricted(WorkerId worker, std::uint32_t most_samples) {
  crew_.restrict(worker, most_samples);
  start_over();
}

void LoadFinishTogether::start_over() {
  plan_.clear();
  boxes_.clear();
  step_s_ = 0;
  regret_s_ = 0;
  since_plan_ = 0;
  foretold_s_.clear();
  later_s_.clear();
  fresh_ = true;
}

const std::vector<std::uint32_t>& LoadFinishTogether::plan() const {
  if (plan_.empty()) plan_ = crew_.first_shares(global_batch_);
  return plan_;
}

void LoadFinishTogether::updated(const Monitor& monitor, const Exposed& exposed) {
  ++since_plan_;
  if (crew_.workers().empty()) return;
  const bool due = fresh_ || since_plan_ >= how_.replan;
  if (!due && !how_.boxed) return;
  std::vector<Device> devices;
  devices.reserve(crew_.workers().size());
  later_s_.resize(crew_.workers().size());
  std::vector<double> foretold;
  for (const WorkerId worker : crew_.workers()) {
    const SpeedFit& speed = monitor.speed(worker);
    if (speed.observations() == 0) return;  // a newcomer: wait for its first step
    const double on_the_way = how_.counts_travel ? exposed(worker) : 0;
    const cluster::Affine pace = cautious(worker, speed.fit());
    const double later = later_s_[devices.size()];
    devices.push_back({{pace.fixed + on_the_way + later, pace.per_sample}, on_the_way, speed.jitter()});
    foretold.push_back(devices.back().with_travel.fixed - later);
  }
  if (due) think_again(devices, monitor);
  for (std::size_t i = 0; i < devices.size(); ++i) foretold[i] += devices[i].with_travel.per_sample * plan_[i];
  foretold_s_ = std::move(foretold);
  make_boxes(devices);
}

void LoadFinishTogether::applied(std::span<const Contribution> members) {
  const auto& workers = crew_.workers();
  const auto as_planned = [&](const Contribution& member, WorkerId worker) {
    return member.worker == worker && crew_.grain(worker) > 1 && !member.first_of_size && member.samples == batch(worker);
  };
  Instant last{};  // of them
  for (const Contribution& member : members) last = std::max(last, member.at);
  const Instant before = std::exchange(last_round_, last);
  // Overlapped steps begin one by one; how much later than others they end says nothing.
  const auto began_in_time = [&](const Contribution& member) { return member.at - member.compute >= before; };
  if (foretold_s_.empty() || !std::equal(members.begin(), members.end(), workers.begin(), workers.end(), as_planned)) return;
  if (!std::all_of(members.begin(), members.end(), began_in_time)) {
    for (double& later : later_s_) later *= 1 - newest;  // what was seen before says little of it
    return;
  }
  double at = 0;
  double foretold = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    at += seconds(members[i].at) / static_cast<double>(members.size());
    foretold += foretold_s_[i] / static_cast<double>(members.size());
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double later = seconds(members[i].at) - at - (foretold_s_[i] - foretold);
    const double most = most_later * std::min(foretold_s_[i], foretold);
    later_s_[i] += newest * (std::clamp(later, -most, most) - later_s_[i]);
  }
}

/// The same at its batch of now, and no wild guess elsewhere: a device that does a step at once meets few sizes, each as noisy as the
/// others.
cluster::Affine LoadFinishTogether::cautious(WorkerId worker, const cluster::Affine& fit) const {
  if (crew_.grain(worker) == 1) return fit;
  const std::uint32_t batch = this->batch(worker);
  const double step = fit.at(batch);
  const double fixed = std::min(fit.fixed, most_fixed * step);
  return {fixed, (step - fixed) / batch};
}

void LoadFinishTogether::think_again(const std::vector<Device>& devices, const Monitor& monitor) {
  std::vector<cluster::Affine> times;
  times.reserve(devices.size());
  for (const Device& device : devices) times.push_back(device.with_travel);
  std::vector<std::uint32_t> plan = crew_.shares(global_batch_, times);
  if (crew_.grained() ? worth_its_price(plan, times, monitor) : fresh_ || outside_dead_band(plan)) plan_ = std::move(plan);
  fresh_ = false;
  since_plan_ = 0;
}

/// The moment at which all end is the mean of the planned ends, each weighted by its speed: what it would be if samples could be split.
void LoadFinishTogether::make_boxes(const std::vector<Device>& devices) {
  double speeds = 0;
  double ends = 0;
  double last = 0;
  double jitter = 0;
  double exposed = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& [times, on_the_way, stray] = devices[i];
    const double end = times.at(plan_[i]);
    speeds += 1 / times.per_sample;
    ends += end / times.per_sample;
    exposed += on_the_way / times.per_sample;
    last = std::max(last, end);
    jitter = std::max(jitter, stray);
  }
  step_s_ = (ends - exposed) / speeds;
  if (!how_.boxed) return;
  const bool calm = jitter <= steady;
  const double end = calm ? surprise * last : ends / speeds;
  boxes_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::uint32_t batch = plan_[i];
    const double most = std::min({most_spare, spare_per_jitter * jitter}) * batch;
    const std::uint32_t room = crew_.limit(crew_.workers()[i]) - batch;
    const bool at_once = crew_.grain(crew_.workers()[i]) > 1;
    boxes_[i].spare = calm || at_once ? 0 : std::min(static_cast<std::uint32_t>(std::ceil(most)), room);
    boxes_[i].limit = from_seconds(std::max((at_once ? surprise * last : end) - devices[i].exposed, devices[i].with_travel.per_sample));
    boxes_[i].micro = std::max(1U, batch / micro_tasks);
  }
}

bool LoadFinishTogether::worth_its_price(const std::vector<std::uint32_t>& plan, const std::vector<cluster::Affine>& times,
                                         const Monitor& monitor) {
  double now = 0;
  double then = 0;
  double price = 0;  // all pay at the same time
  double jitter = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const WorkerId worker = crew_.workers()[i];
    const std::uint32_t before = this->plan()[i];
    jitter = std::max(jitter, monitor.speed(worker).jitter());
    if (plan[i] != before) price = std::max(price, monitor.first_of_size_s(worker, plan[i]));
    if (plan[i] == before && (before == 1 || before == crew_.limit(worker))) continue;  // it has no choice
    now = std::max(now, times[i].at(before));
    then = std::max(then, times[i].at(plan[i]));
  }
  if (now <= (jitter <= steady ? worth_it : worth_it_uneven) * then) {
    regret_s_ *= forgiven;
    return false;
  }
  regret_s_ += since_plan_ * (now - then);
  if (regret_s_ < down_payment * price) return false;
  regret_s_ = 0;
  return true;
}

bool LoadFinishTogether::outside_dead_band(const std::vector<std::uint32_t>& plan) const {
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (std::abs(static_cast<double>(plan[i]) - plan_[i]) > dead_band * plan_[i]) return true;
  return false;
}

std::uint32_t LoadFinishTogether::batch(WorkerId worker) const { return plan()[crew_.rank(worker)]; }

Box LoadFinishTogether::box(WorkerId worker) const { return boxes_.empty() ? Box{} : boxes_[crew_.rank(worker)]; }

}  // namespace motley::policy
