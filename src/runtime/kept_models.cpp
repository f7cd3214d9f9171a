#include "runtime/kept_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "codec/magnitude.h"

namespace motley::runtime {

KeptModels::KeptModels(boost::asio::io_context& event_loop, KeptModelsOptions options, const PipelineChiefHooks& hooks,
                       KeptModelsOwner& owner)
    : options_(std::move(options)),
      hooks_(hooks),
      owner_(owner),
      model_(std::move(options_.initial_model)),
      parts_(options_.second),
      saved_(options_.first_mini),
      background_(event_loop) {}

std::uint64_t KeptModels::samples_of(std::uint64_t mini_batches) const {
  return std::min(mini_batches * options_.samples, options_.total_samples);
}

std::span<std::byte> KeptModels::receive_buffer(PeerConnection& from, const wire::StageSlice& slice, std::size_t bytes, bool wanted) {
  const auto part = wanted ? parts_.receive_buffer(slice, bytes) : ModelParts::ReceiveBuffer{};
  if (!part) return {};
  if (!part->keeps) return from.discard(bytes);
  return from.receive_into(std::as_writable_bytes(part->values), std::make_shared<ModelParts::ReceiveBuffer>(*part));
}

KeptModels::Received KeptModels::received(PeerConnection& from, const wire::StageSlice& slice) {
  const auto part = std::static_pointer_cast<ModelParts::ReceiveBuffer>(from.take_received().memory);
  if (!part || !parts_.wants(slice, *part)) return Received::not_wanted;
  if (!codec::all_finite(part->values)) return Received::not_finite;
  return parts_.received(slice, *part) ? Received::whole_model : Received::part;
}

void KeptModels::keep(std::uint64_t mini_batches) {
  if (!parts_.put(mini_batches, model_)) return;
  // Saving goes first: an evaluation takes long on busy processors, and a crash meanwhile loses everything since the last checkpoint.
  if (options_.checkpoint_every > 0 && mini_batches / options_.checkpoint_every > saved_ / options_.checkpoint_every) save();
  if (mini_batches % options_.evaluate_every == 0 || mini_batches == options_.mini_batches) evaluate(mini_batches);
}

void KeptModels::evaluate(std::uint64_t mini_batches) {
  if (!hooks_.evaluate) return;
  const auto work = [this, values = std::make_shared<const std::vector<float>>(model_.values)] { return hooks_.evaluate(*values); };
  background_.run(work, [this, at = owner_.trained(), mini_batches](const Result<EvaluationResult>& result) {
    if (!result) return owner_.evaluation_failed(result.error());
    owner_.evaluated(
        {at, trace::Evaluated{
                 .version = {mini_batches}, .samples = samples_of(mini_batches), .accuracy = result->accuracy, .loss = result->loss}});
    if (!std::isfinite(result->loss))
      return owner_.diverged(fmt::format("the loss of the model after mini-batch {} is not finite", mini_batches));
    owner_.models_advanced();
  });
}

void KeptModels::save() {
  if (!hooks_.save || model_.updates == 0) return;
  saved_ = model_.updates;
  owner_.saving();
  if (hooks_.saving) hooks_.saving();
  const auto kept = std::make_shared<const KeptModel>(KeptModel{model_, model_.updates, owner_.trained().time_since_epoch()});
  background_.run([this, kept] { return hooks_.save(*kept); },
                  [this](const Outcome& written) {
                    if (hooks_.saved) hooks_.saved(written);
                    owner_.models_advanced();
                  });
}

}  // namespace motley::runtime
