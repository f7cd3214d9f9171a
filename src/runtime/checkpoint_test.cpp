// Checkpoints that are damaged, missing, old or made up: the newest whole one is found, nothing good is removed, nothing bad is believed.
#include "runtime/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/mutations_for_tests.h"
#include "policy/strategies.h"
#include "runtime/checkpoint_state.h"
#include "store/safetensors.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t samples = 10'000;

protocol::Chief a_chief() {
  return {{.epoch_samples = 1000, .total_samples = samples, .global_batch = 10, .evaluate_every = 500, .max_time = {}},
          policy::make_strategy({.kind = "hps", .knobs = {}, .batches = {}}, {}).value(),
          policy::LrSchedule({.lr = 0.1}, 10, 1000, samples)};
}

ModelShape a_model() {
  return {.tensors = {{"weight", {4, 3}, 0, 12}, {"bias", {3}, 12, 3}, {"mean", {3}, 15, 3, TensorKind::statistic}},
          .parameters = 15,
          .statistics = 3};
}

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] Saved state(std::uint64_t version) const {
    Saved saved;
    saved.chief.version = Version{version};
    saved.chief.counted.emplace(0, 10 * version);
    saved.chief.next_evaluation = (10 * version / 500 + 1) * 500;
    saved.chief.evaluated = Version{version / 50 * 50};
    saved.chief.next_worker = WorkerId{3};
    saved.chief.trained = from_seconds(1.5);
    saved.chief.strategy = policy::make_strategy({.kind = "hps", .knobs = {}, .batches = {}}, {})->save();
    saved.values = make_buffer(model_.values());
    for (std::size_t i = 0; i < model_.values(); ++i) saved.values->floats()[i] = static_cast<float>(version) + static_cast<float>(i);
    saved.moments.first.assign(model_.values(), 0.25F);
    saved.moments.second.assign(model_.values(), 0.5F);
    saved.moments.updates = version;
    saved.moments.rate = 0.1;
    return saved;
  }
  void save(std::uint64_t version) const { ASSERT_TRUE(save_checkpoint(folder_, model_, state(version), job_).ok()); }
  [[nodiscard]] Result<FoundCheckpoint> find(const std::string& job = "the job") const {
    const auto chief = std::make_shared<protocol::Chief>(a_chief());
    return find_checkpoint(folder_, {model_, job, true, 0.1, [chief](const protocol::ChiefState& found) { return chief->resume(found); }});
  }
  void expect_found(std::uint64_t version, std::size_t passed_over, const std::string& words = "") const {
    const auto found = find();
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_TRUE(found->newest.has_value());
    EXPECT_EQ(found->newest->chief.version, Version{version});
    EXPECT_EQ(found->newest->initial_state.values[1], static_cast<float>(version) + 1);
    EXPECT_EQ(found->passed_over.size(), passed_over);
    std::string all;
    for (const std::string& word : found->words) all += word + "\n";
    EXPECT_NE(all.find(words), std::string::npos) << "'" << words << "' is missing from: " << all;
    EXPECT_EQ(all.empty(), words.empty()) << all;
  }
  void expect_refused(const std::string& because) const {
    const auto found = find();
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().next, Next::tell_user);
    EXPECT_NE(found.error().message.find(because), std::string::npos) << found.error().message;
    EXPECT_NE(found.error().message.find("--from-scratch"), std::string::npos) << found.error().message;
  }
  [[nodiscard]] fs::path file(std::uint64_t version) const { return folder_ / fmt::format("{:012}.safetensors", version); }
  [[nodiscard]] static std::string text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }
  /// As save_checkpoint() would write it, with a checksum that fits, of whatever state.
  void forge(const Saved& saved, const std::string& chief, const std::string& rest) const {
    std::vector<store::NamedTensor> tensors = store::named_tensors(model_);
    for (const auto& [prefix, offset] :
         {std::pair("optimizer.first.", model_.values()), std::pair("optimizer.second.", model_.values() + model_.parameters)})
      for (const Tensor& tensor : model_.tensors)
        if (tensor.offset < model_.parameters) tensors.push_back({prefix + tensor.name, tensor.shape, offset + tensor.offset});
    const std::vector<std::span<const float>> pieces{std::as_const(*saved.values).floats(),
                                                     std::span(saved.moments.first).first(model_.parameters),
                                                     std::span(saved.moments.second).first(model_.parameters)};
    const Outcome written = store::write_safetensors(file(saved.chief.version.value), tensors, pieces,
                                                     {{"motley.chief", chief}, {"motley.rest", rest}, {"motley.job", job_}});
    ASSERT_TRUE(written.ok()) << written.error().message;
    put(folder_ / "latest", file(saved.chief.version.value).filename().string() + "\n");
  }
  void forge(const Saved& saved) const { forge(saved, chief_state_json(saved.chief), R"({"optimizer_updates":50,"rate":0.1})"); }

  ModelShape model_ = a_model();
  std::string job_ = "the job";
  fs::path folder_ = fs::path(testing::TempDir()) / ("motley-checkpoints-" + std::to_string(getpid()));
};

TEST_F(Checkpoints, AnEmptyFolderHasNoneAndThatIsNoError) {
  ASSERT_TRUE(find().ok());
  EXPECT_FALSE(find()->newest.has_value());
  fs::remove_all(folder_);
  EXPECT_TRUE(find().ok());
}

TEST_F(Checkpoints, TheTwoNewestAreKeptAndTheNewestIsFound) {
  for (const std::uint64_t version : {100, 200, 300}) save(version);
  EXPECT_FALSE(fs::exists(file(100)));
  EXPECT_TRUE(fs::exists(file(200)));
  EXPECT_EQ(text(folder_ / "latest"), "000000000300.safetensors\n");
  expect_found(300, 0);
}

TEST_F(Checkpoints, ADamagedLatestDoesNotMatter) {
  save(100);
  save(200);
  for (const char* damaged : {"", "\n", "noise", "000000000100.safetensors\n", "../../etc\x1b[31m"}) {
    put(folder_ / "latest", damaged);
    expect_found(200, 0, "`latest` names");
  }
  fs::remove(folder_ / "latest");
  expect_found(200, 0, "`latest` names none");
}

TEST_F(Checkpoints, TheNewestWholeOneIsFoundAndWhatIsPassedOverIsNamed) {
  save(100);
  save(200);
  std::string damaged = text(file(200));
  damaged[damaged.size() - 3] ^= 4;
  put(file(200), damaged);
  expect_found(100, 1, "000000000200.safetensors cannot be used: reading");
  put(file(200), "");
  expect_found(100, 1, "too few for a header");
  fs::remove(file(200));
  fs::create_directory(file(200));
  expect_found(100, 1, "found no file there");
}

TEST_F(Checkpoints, AlienCheckpointsAreRefusedAndNothingIsRemoved) {
  save(100);
  save(200);
  put(file(100), "noise");
  put(file(200), "noise");
  expect_refused("000000000100.safetensors cannot be used");
  EXPECT_EQ(text(file(100)), "noise");
  for (const std::uint64_t version : {100, 200}) fs::remove(file(version));
  expect_refused("`latest` names 000000000200.safetensors");
  save(100);
  const auto other = find("another job");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("checkpoint of another job"), std::string::npos) << other.error().message;
}

TEST_F(Checkpoints, NewerOnesAreNotRemovedWhenAnOlderIsSaved) {
  save(500);
  save(100);
  save(200);
  save(300);
  EXPECT_TRUE(fs::exists(file(500)));
  EXPECT_TRUE(fs::exists(file(200)));
  EXPECT_FALSE(fs::exists(file(100)));
}

TEST_F(Checkpoints, NothingIsBelievedThatCannotBe) {
  const auto refused = [&](const std::string& because, const auto& change) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Saved saved = state(100);
    change(saved);
    forge(saved);
    SCOPED_TRACE(because);
    expect_refused(because);
  };
  constexpr float infinite = std::numeric_limits<float>::infinity();
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  refused("tensor 'bias': found the value inf", [](Saved& s) { s.values->floats()[13] = infinite; });
  refused("tensor 'mean': found the value nan", [](Saved& s) { s.values->floats()[16] = std::nanf(""); });
  refused("tensor 'optimizer.first.weight'", [](Saved& s) { s.moments.first[0] = -infinite; });
  refused("tensor 'optimizer.second.bias': found the value -1", [](Saved& s) { s.moments.second[14] = -1; });
  refused("version: found 2000", [](Saved& s) { s.chief.version = Version{2000}; });
  refused("version: found 18446744073709551615", [](Saved& s) { s.chief.version = Version{most}; });
  refused("counted: found more", [](Saved& s) { s.chief.counted = {{0, std::numeric_limits<std::uint64_t>::max()}}; });
  refused("counted: found more", [](Saved& s) { s.chief.counted = {{0, samples + 1}}; });
  refused("version: found 100, expected 1 to 0", [](Saved& s) { s.chief.counted = {{9, 2}}; });
  refused("counted: found ranges that overlap", [](Saved& s) { s.chief.counted = {{0, 600}, {500, 900}}; });
  refused("counted: found ranges that overlap", [](Saved& s) { s.chief.counted = {{0, 600}, {samples, samples + 400}}; });
  refused("next_evaluation: found 0", [](Saved& s) { s.chief.next_evaluation = 0; });
  refused("next_evaluation: found 18446744073709551615", [](Saved& s) { s.chief.next_evaluation = most; });
  refused("next_evaluation: found 2000", [](Saved& s) { s.chief.next_evaluation = 2000; });
  refused("evaluated: found 101", [](Saved& s) { s.chief.evaluated = Version{101}; });
  refused("next_worker: found 4294967295", [](Saved& s) { s.chief.next_worker = WorkerId{0xFFFFFFFF}; });
  refused("trained_ns: found -1", [](Saved& s) { s.chief.trained = Duration{-1}; });
  refused("trained_ns: found 9223372036854775807", [](Saved& s) { s.chief.trained = Duration::max(); });
  refused("strategy.more: found an unknown name", [](Saved& s) { s.chief.strategy.emplace("more", 1.5); });
  refused("strategy.rule.moving_norm: found nothing of this name", [](Saved& s) { s.chief.strategy.clear(); });
  refused("strategy.updates: found the number 0.5", [](Saved& s) { s.chief.strategy["updates"] = 0.5; });
  refused("strategy.mean_square: found -1", [](Saved& s) { s.chief.strategy["mean_square"] = -1.0; });
}

TEST_F(Checkpoints, MembersThatAreMissingOrUnknownAreRefused) {
  const Saved good = state(100);
  const std::string chief = chief_state_json(good.chief), rest = R"({"optimizer_updates":50,"rate":0.1})";
  forge(good, chief, rest);
  expect_found(100, 0);
  forge(good, chief.substr(0, chief.size() - 1) + R"(,"more":1})", rest);
  expect_refused("found 9 members, expected 8");
  std::string older = chief;
  older.replace(older.find(R"("format":3)"), 10, R"("format":2)");
  forge(good, older, rest);
  expect_refused("format: found 2, expected 3");
  for (const char* bad :
       {R"({"optimizer_updates":101,"rate":0.1})", R"({"optimizer_updates":50,"rate":0.2})", R"({"optimizer_updates":50,"rate":-0.1})",
        R"({"optimizer_updates":50,"rate":1e999})", R"({"rate":0.1})", R"({"optimizer_updates":50,"rate":0.1,"more":1})", "[]", ""}) {
    forge(good, chief, bad);
    expect_refused("cannot be used");
  }
}

TEST_F(Checkpoints, AStateThatCouldNotBeReadIsNotWritten) {
  save(100);
  Saved saved = state(200);
  saved.chief.strategy["rule.moving_norm"] = std::nan("");
  EXPECT_FALSE(save_checkpoint(folder_, model_, saved, job_).ok());
  expect_found(100, 0);
}

TEST_F(Checkpoints, NoMutationOfAFileIsBelievedOrEndsTheReader) {
  save(100);
  const std::string whole = text(file(100));
  const std::uint64_t before = peak_bytes();
  for (std::uint64_t seed = 0; seed < mutations; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "checkpoint");
    const std::string damaged = mutated(whole, rng);
    put(file(100), damaged);
    const auto found = find();
    ASSERT_TRUE(!found.ok() || damaged == whole);
  }
  EXPECT_LT(peak_bytes() - before, most_growth);
}

TEST_F(Checkpoints, MutationsWithAChecksumThatFitsEndNothingEither) {
  const Saved good = state(100);
  const std::string chief = chief_state_json(good.chief), rest = R"({"optimizer_updates":50,"rate":0.1})";
  const std::uint64_t before = peak_bytes();
  for (std::uint64_t seed = 0; seed < mutations / 4; ++seed) {  // each brings several files to the disk
    SCOPED_TRACE(seed);
    Rng rng(seed, "forged checkpoint");
    forge(good, mutated_text(chief, rng), rng.below(4) == 0 ? mutated_text(rest, rng) : rest);
    const auto found = find();
    if (!found.ok() || !found->newest) continue;
    protocol::Chief machine = a_chief();  // an accepted state can be resumed
    ASSERT_TRUE(machine.resume(found->newest->chief).ok());
    protocol::ChiefActions actions;
    for (std::uint32_t n = 0; n < 4; ++n)
      machine.step(Instant{} + from_seconds(n),
                   protocol::Received{protocol::pending_worker(n), wire::Hello{.node = "a", .attempt = 1, .node_index = n}}, actions);
    machine.step(Instant{} + from_seconds(100), protocol::Tick{}, actions);
    machine.step(Instant{} + from_seconds(101), protocol::Interrupted{}, actions);
  }
  EXPECT_LT(peak_bytes() - before, most_growth);
}

}  // namespace
}  // namespace motley::runtime
