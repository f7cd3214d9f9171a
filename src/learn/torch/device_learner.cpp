// A learner on a device with memory of its own. Each block's values are copied in just before its forward, on a lane of their own, and its
// gradient is copied out as soon as its backward has made it, while the device goes on with the next; between host and device lies pinned
// memory. Samples are gathered and the loss is computed on the device, so the host waits only for gradients.
#include "learn/torch/device_learner.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bits.h"
#include "learn/torch/device_codec.h"
#include "learn/torch/device_local_sgd.h"
#include "learn/torch/device_model.h"
#include "learn/torch/device_samples.h"
#include "learn/torch/gradient_sender.h"
#include "learn/torch/pinned.h"

namespace motley::learn {

namespace {

constexpr std::size_t evaluation_chunk = 1000;
constexpr std::size_t blocks_ahead = 2;  // of a next step: some milliseconds of a device, less than one of its host

class DeviceLearner final : public Learner {
 public:
  DeviceLearner(Model model, Measured measured, const std::shared_ptr<const DataSet>& data, at::Device device, bool half)
      : model_(std::move(model), device, half),
        measured_(std::move(measured)),
        samples_(data, {device, half ? at::kBFloat16 : at::kFloat, device.is_cuda()}),
        shape_(data->shape()),
        evaluated_(data->size(Part::evaluation)),
        host_to_device_(model_.lanes(), model_.shape().values(), device),
        asked_(model_.blocks() + 1),
        came_(model_.blocks() + 1),
        made_(model_.blocks() + 1),
        out_(model_.blocks() + 1),
        leaves_(pinned(model_.shape().values(), at::kFloat, device)),
        norms_(at::zeros({static_cast<std::int64_t>(model_.blocks())}, model_.values().options())),
        score_(pinned(5, at::kDouble, device)),
        codec_(device),
        coder_(model_.lanes(), model_.shape().values(), device) {}

  DeviceLearner(const DeviceLearner&) = delete;
  DeviceLearner& operator=(const DeviceLearner&) = delete;
  /// Whoever lent it values may take them back.
  ~DeviceLearner() override {
    try {
      model_.lanes().settle();
    } catch (const std::exception&) {  // nothing is under way on a device that has failed
    }
  }

  const ModelShape& shape() const override { return model_.shape(); }
  std::uint64_t activation_bytes_per_sample() const override { return measured_.activation_bytes; }
  std::vector<BlockProfile> profile() override { return measured_.profile; }
  bool bf16_transfer() const override { return model_.rounded().defined(); }

  void initialize(std::uint64_t seed, std::span<float> values) override {
    check(values.size() == shape().values(), "values has room for the whole model");
    fill_initial(model_.model(), seed, values);
  }

  using Learner::gradient;
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    check(!samples.empty(), "a gradient is taken over a sample or more");
    check(values.size() == shape().values() && out.size() == values.size(), "values and out hold the whole model");
    Tidy tidy(*this);
    const auto guard = model_.lanes().on(Lane::compute);
    if (!begun_ || begun_->id != io.id() || begun_->id == 0) {
      drop_begun();
      if (!begin(io.id(), values, samples, io)) return {};  // given up
    }
    if (!pass(*begun_, model_.blocks(), io)) return {};
    const at::Tensor logits = begun_->passing.x.detach();
    const DeviceSamples::Gathered batch = std::exchange(begun_, std::nullopt)->batch;
    direct_ = is_pinned(std::as_bytes(out));
    const at::Tensor leaves = direct_ ? as_tensor(out) : leaves_;
    coding_ = io.gradient_encoding();
    gradient_sender_.begin(model_, coding_);
    if (coding_ != nullptr && !gradient_sender_) coder_.begin(*coding_);
    model_.backward(model_.score(logits, batch.targets, /*wants_gradient=*/true), [&](std::size_t block) { send(block, leaves); });
    send_score();
    make_ready();
    gather_ahead(io);
    // All that there is to do after the last gradient was asked for before the first has come.
    tell_stalled(io);
    hand_out(out, io);
    scored_.wait();
    tidy.settled = true;
    StepResult result = per_sample(score_.data_ptr<double>(), samples.size(), shape_);
    result.squared_norm = score_.data_ptr<double>()[2] + gradient_sender_.squares_in_floats(out.first(shape().parameters));
    result.coded = coding_ != nullptr;
    if (result.coded && !gradient_sender_) result.residual = residual_ratio(score_.data_ptr<double>() + 3);
    return result;
  }

  StepResult evaluate(std::span<const float> values) override {
    check(values.size() == shape().values(), "values holds the whole model");
    Tidy tidy(*this);
    const auto guard = model_.lanes().on(Lane::compute);
    drop_begun();
    NoStreaming no_streaming;
    std::vector<std::uint32_t> chunk(shape_.text ? 64 : evaluation_chunk);
    StepResult result;
    at::Tensor total = at::zeros({2}, at::TensorOptions(at::kDouble).device(model_.device()));
    for (std::uint64_t first = 0; first < evaluated_; first += chunk.size()) {
      chunk.resize(std::min<std::uint64_t>(chunk.size(), evaluated_ - first));
      std::iota(chunk.begin(), chunk.end(), static_cast<std::uint32_t>(first));
      const auto batch = samples_.gather(Part::evaluation, chunk);
      // The values are copied once, with the first chunk.
      if (first == 0) {
        rewound_.hold_if_set(model_.lanes(), Lane::in);
        take(model_.blocks(), values, no_streaming);
      }
      const at::Tensor logits =
          model_.forward(batch.inputs, Mode::evaluation, [&](std::size_t block) { return first > 0 || take(block, values, no_streaming); });
      model_.score(logits, batch.targets, /*wants_gradient=*/false);
      total.add_(model_.sums());
      result.samples += static_cast<std::uint64_t>(batch.targets.numel());
    }
    score_.slice(0, 0, 2).copy_(total, /*non_blocking=*/true);
    model_.lanes().settle();
    tidy.settled = true;
    result.loss_sum = score_.data_ptr<double>()[0];
    result.correct = static_cast<std::uint64_t>(score_.data_ptr<double>()[1]);
    return result;
  }

  LocalSgd* local_sgd() override {
    if (!local_sgd_) local_sgd_ = device_local_sgd(model_, samples_, shape_);
    return local_sgd_.get();
  }

 private:
  /// A step that is on its way forward.
  struct Begun {
    std::uint64_t id = 0;           // its flow's
    std::span<const float> values;  // of the host
    DeviceSamples::Gathered batch;
    DeviceModel::Passing passing;
  };

  /// A step that comes to no end leaves no graph, and nothing under way in the pinned memory that the next one will write.
  struct Tidy {
    explicit Tidy(DeviceLearner& of) : learner(of) {}
    Tidy(const Tidy&) = delete;
    Tidy& operator=(const Tidy&) = delete;
    ~Tidy() {
      if (settled) return;
      try {
        learner.give_up();
      } catch (const std::exception&) {  // a device that has failed says so again to whoever asks it next
      }
    }
    DeviceLearner& learner;
    bool settled = false;  // by whoever came to an end
  };

  /// The statistics are taken, the samples are there. False: given up.
  bool begin(std::uint64_t id, std::span<const float> values, std::span<const std::uint32_t> samples, StepIo& io) {
    if (!ready_) make_ready();  // the step before came to no end
    last_taken_.reset();
    taking_ = {};
    gathered_.hold_if_set(model_.lanes(), Lane::compute);
    const DeviceSamples::Gathered batch = samples_.gather(Part::training, samples);
    rewound_.hold_if_set(model_.lanes(), Lane::in);
    if (!take(model_.blocks(), values, io)) return false;
    begun_ = Begun{id, values, batch, model_.begin(batch.inputs, Mode::training)};
    ready_ = false;  // from here on there are statistics to undo
    return true;
  }

  bool pass(Begun& step, std::size_t until, StepIo& io) {
    return model_.pass(step.passing, Mode::training, until, [&](std::size_t block) { return take(block, step.values, io); });
  }

  /// The device would stand still while the host turns from the last gradient to the next step: its first blocks are asked for before that.
  void begin_next(StepIo& io) {
    if (begun_) return;
    const std::optional<NextStep> next = io.next_step();
    if (!next || next->id == failed_ || !samples_.at_hand(next->samples)) return;
    const auto there = [&](std::size_t block) { return next->io->wait_for(range(block).first, range(block).last); };
    if (!there(model_.blocks()) || !there(0)) return;
    std::size_t until = 1;
    while (until < std::min(blocks_ahead, model_.blocks()) && there(until)) ++until;
    const auto guard = model_.lanes().on(Lane::compute);
    try {
      if (!begin(next->id, next->values, next->samples, *next->io) || !pass(*begun_, until, *next->io)) drop_begun();
    } catch (const std::exception&) {  // whatever it was, the step itself will say so
      give_up();
      failed_ = next->id;
    }
  }

  /// What was begun does not come.
  void drop_begun() {
    if (begun_) give_up();
  }
  void give_up() {
    begun_.reset();
    model_.forget();
    model_.lanes().settle();  // whose values it took may take them back
  }

  /// Between two steps, while the host turns: since values stay here from step to step, what this one did to its statistics is undone.
  void make_ready() {
    const Lanes& lanes = model_.lanes();
    model_.rewind();
    rewound_.set(lanes, Lane::compute);
    ready_ = true;
  }

  /// The samples of the next step, while the device is at this one.
  void gather_ahead(StepIo& io) {
    const std::span<const std::uint32_t> next = io.likely_next_samples();
    if (next.empty()) return;
    const auto guard = model_.lanes().on(Lane::in);
    try {
      samples_.gather_ahead(next);
    } catch (const std::exception&) {  // whoever needs them will ask again
    }
    gathered_.set(model_.lanes(), Lane::in);
  }

  /// As it came; see StepIo::take(). Values that lie one behind the other go in together, with what is left in take_in_rest().
  void take_in(const IncomingValues& came) {
    const c10::AutoGradMode graph(false);
    const bool again = std::exchange(last_taken_, came.first) == came.first;  // the same place once more: its room is in use
    const bool whole = came.bits == fp32_bits;
    const std::span<const float> values(reinterpret_cast<const float*>(came.bytes.data()), whole ? came.count : 0);
    const bool goes_on = whole && !again && came.first == taking_from_ + taking_.size() && values.data() == taking_.data() + taking_.size();
    if (goes_on) {
      taking_ = {taking_.data(), taking_.size() + values.size()};
      return;
    }
    take_in_rest();
    if (again) model_.lanes().settle();
    taking_from_ = came.first;
    taking_ = values;
    if (whole) return;
    model_.expect({came.first, came.first + came.count}, came.rounded);
    if (came.rounded) return host_to_device_.take(came.first, came.bytes, model_.rounded());
    part(model_.values(), came.first, came.first + came.count)
        .add_(codec_.decode(host_to_device_.take_bytes(came.first, came.bytes), came.bits, static_cast<std::int64_t>(came.count)));
  }
  void take_in_rest() {
    if (taking_.empty()) return;
    model_.expect({taking_from_, taking_from_ + taking_.size()}, /*rounded=*/false);
    host_to_device_.take(taking_from_, std::as_bytes(taking_), model_.values());
    taking_ = {};
  }

  /// The values of a block, or behind the last of them the statistics, are on the device before it goes on. False: given up.
  bool take(std::size_t block, std::span<const float> values, StepIo& io) {
    const auto [first, last] = range(block);
    if (first == last) return true;
    asked_[block].set(model_.lanes(), Lane::compute);
    if (!io.wait_for(first, last)) return false;
    if (!io.take(first, last, [&](const IncomingValues& came) { take_in(came); })) {
      taking_from_ = first;
      taking_ = values.subspan(first, last - first);
    }
    take_in_rest();
    host_to_device_.join();
    came_[block].set(model_.lanes(), Lane::in);
    return true;
  }

  /// When forward is done: from when the compute lane was there until the values were.
  void tell_stalled(StepIo& io) {
    if (!TimedMark::tells || model_.lanes().none()) return;
    double stalled = 0;
    for (std::size_t block = 0; block < asked_.size(); ++block) {
      if (range(block).first == range(block).last) continue;
      asked_[block].wait();
      came_[block].wait();
      stalled += asked_[block].seconds_until(came_[block]);
    }
    io.stalled(from_seconds(stalled));
  }

  /// Of a block, or behind the last of them the statistics.
  [[nodiscard]] DeviceModel::Range range(std::size_t block) const {
    return block < model_.blocks() ? model_.range(block) : DeviceModel::Range{shape().parameters, shape().values()};
  }

  /// What the compute lane has made goes to pinned memory: ours, or that of the gradient itself. Its length is taken on the same lane,
  /// while the other one computes.
  void send(std::size_t block, const at::Tensor& leaves) {
    const auto [first, last] = range(block);
    if (first == last) return;
    const Lanes& lanes = model_.lanes();
    const std::uint64_t made = block < model_.blocks() ? shape().parameters : last;  // behind a block everything is
    if (coding_ != nullptr && !gradient_sender_) {
      coder_.code(first, made, model_.gradient(), leaves.view(at::kByte));
    } else {
      made_[block].set(lanes, Lane::compute);
      made_[block].hold(lanes, Lane::out);
    }
    const auto guard = lanes.on(Lane::out);
    if (gradient_sender_)
      gradient_sender_.send(model_, first, made, leaves.view(at::kByte));
    else if (coding_ == nullptr)
      part(leaves, first, last).copy_(part(model_.gradient(), first, last), /*non_blocking=*/true);
    out_[block].set(lanes, Lane::out);
    if (block == model_.blocks()) return;
    at::Tensor norm = norms_.select(0, static_cast<std::int64_t>(block));
    at::linalg_vector_norm_out(norm, part(gradient_sender_ ? model_.rounded_gradient() : model_.gradient(), first, last), 2, /*dim=*/{},
                               /*keepdim=*/false, at::kFloat);
  }

  /// After every send().
  void send_score() {
    const auto guard = model_.lanes().on(Lane::out);
    const at::Tensor squared_norm = norms_.to(at::kDouble).square().sum().unsqueeze(0);
    score_.copy_(at::cat({model_.sums(), squared_norm, coder_.kept()}), /*non_blocking=*/true);
    scored_.set(model_.lanes(), Lane::out);
  }

  /// From the pinned memory, with all of the slices that begin there when they are coded.
  void bring(std::uint64_t first, std::uint64_t last, std::span<float> out) const {
    if (coding_ != nullptr)
      for (const GradientEncoding::Slice& slice : coding_->slices)
        if (slice.first >= first && slice.first < last) last = std::max(last, slice.first + slice.count);
    std::copy(leaves_.data_ptr<float>() + first, leaves_.data_ptr<float>() + last, out.begin() + static_cast<std::ptrdiff_t>(first));
  }

  /// In the order in which it is made, as soon as it is there.
  void hand_out(std::span<float> out, StepIo& io) {
    const auto hand = [&](std::size_t block) {
      const auto [first, last] = range(block);
      if (first == last) return;
      out_[block].wait();
      if (!direct_) bring(first, last, out);
      if (coding_ != nullptr)
        io.encoded_gradient_ready(first, last);
      else
        io.gradient_ready(first, last);
    };
    for (std::size_t b = model_.blocks(); b-- > 0;) {
      if (b < blocks_ahead) begin_next(io);  // while backward is in the last blocks
      hand(b);
    }
    begin_next(io);
    hand(model_.blocks());
  }

  DeviceModel model_;
  Measured measured_;
  DeviceSamples samples_;
  SampleShape shape_;
  std::uint64_t evaluated_;  // samples
  HostToDevice host_to_device_;
  std::vector<TimedMark> asked_, came_;  // by block, behind the last the statistics
  std::vector<Mark> made_, out_;         // likewise
  Mark scored_, rewound_, gathered_;
  at::Tensor leaves_;  // pinned
  at::Tensor norms_;   // of the gradient, by block
  at::Tensor score_;   // pinned
  std::optional<Begun> begun_;
  std::uint64_t failed_ = 0;  // could not be begun ahead
  bool ready_ = true;         // for a step
  bool direct_ = false;       // this step's gradient needs no leaves_
  DeviceCodec codec_;
  DeviceCoder coder_;
  const GradientEncoding* coding_ = nullptr;  // of this step
  GradientSender gradient_sender_;            // if it wants the gradient so
  std::optional<std::uint64_t> last_taken_;   // in this step: where it begins
  std::uint64_t taking_from_ = 0;
  std::span<const float> taking_;  // to there: what has come and was not taken in yet
  std::unique_ptr<LocalSgd> local_sgd_;
};

}  // namespace

StepResult per_sample(const double* sums, std::uint64_t samples, const SampleShape& shape) {
  const auto targets = static_cast<std::uint64_t>(shape.targets());
  return {sums[0] / static_cast<double>(targets), (static_cast<std::uint64_t>(sums[1]) + targets / 2) / targets, samples};
}

std::unique_ptr<Learner> device_learner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool half) {
  return std::make_unique<DeviceLearner>(std::move(model), std::move(measured), data, device, half);
}

}  // namespace motley::learn
