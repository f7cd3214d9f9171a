// The reader checks values, records the keys it reads, and reports every error.
#include "config/toml_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/toml_override.h"

namespace motley::config {
namespace {

class ReaderTest : public testing::Test {
 protected:
  Reader read(const char* text) {
    auto parsed = parse_toml(text, "x.toml");
    EXPECT_TRUE(parsed.ok()) << text;
    document_ = std::move(parsed).value();
    return Reader(document_, "", complaints_);
  }
  std::string complaint() { return complaints_.empty() ? "" : complaints_.error().message; }

  Value document_;
  Complaints complaints_;
};

TEST_F(ReaderTest, Sets_present_keys_and_keeps_other_targets) {
  Reader reader = read("lr = 0.5\nsteps = 3");
  double lr = 0, momentum = 0.9;
  std::optional<std::uint32_t> steps, bound;
  reader.number("lr", lr, above(0), "rate");
  reader.number("momentum", momentum, from_to_below(0, 1), "momentum");
  reader.integer("steps", steps, at_least(1), "steps");
  reader.integer("bound", bound, at_least(1), "bound");
  reader.finish();
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(lr, 0.5);
  EXPECT_EQ(momentum, 0.9);
  EXPECT_EQ(steps, 3U);
  EXPECT_FALSE(bound);
}

TEST_F(ReaderTest, Error_names_place_key_found_and_expected) {
  Reader reader = read("\n[node]\nspeed = -5");
  double speed = 7;
  reader.section("node").number("speed", speed, above(0), "samples per second");
  EXPECT_EQ(complaint(), "x.toml:3: node.speed: found -5, expected a number above 0 (samples per second)");
  EXPECT_EQ(speed, 7);
}

TEST_F(ReaderTest, Wrong_type_is_named) {
  Reader reader = read("seed = \"x\"\nlr = true\nsteps = 1.5");
  std::uint64_t seed = 0, steps = 0;
  double lr = 0;
  reader.integer("seed", seed, at_least(0), "seed");
  EXPECT_EQ(complaint(), "x.toml:1: seed: found a string \"x\", expected an integer of at least 0 (seed)");
  reader.number("lr", lr, above(0), "rate");
  EXPECT_NE(complaint().find("found a truth value true, expected a number above 0"), std::string::npos) << complaint();
  reader.integer("steps", steps, at_least(0), "steps");
  EXPECT_NE(complaint().find("found a number 1.5, expected an integer"), std::string::npos) << complaint();
}

TEST_F(ReaderTest, NaN_and_infinity_are_refused) {
  Reader reader = read("a = nan\nb = inf");
  double x = 1;
  reader.number("a", x, {}, "a");
  reader.number("b", x, {}, "b");
  EXPECT_NE(complaint().find("found nan"), std::string::npos) << complaint();
  EXPECT_NE(complaint().find("found inf"), std::string::npos) << complaint();
  EXPECT_EQ(x, 1);
}

TEST_F(ReaderTest, Wide_limit_is_named_only_when_broken) {
  const Bounds bounds = above(0).no_more_than(1e6);
  EXPECT_EQ(bounds.words(-1), "above 0");
  EXPECT_EQ(bounds.words(1e7), "of at most 1000000");
  EXPECT_EQ(from_to_below(0, 1).words(1), "from 0 to below 1");
}

TEST_F(ReaderTest, Unknown_key_gets_the_nearest_known_key) {
  Reader reader = read("[job]\nsede = 3");
  Reader job = reader.section("job");
  std::uint64_t seed = 0;
  job.integer("seed", seed, at_least(0), "seed");
  job.finish();
  EXPECT_EQ(complaint(), "x.toml:2: job.sede: found an unknown key, expected one of seed; did you mean seed?");
}

TEST_F(ReaderTest, Missing_required_key_is_named_at_its_table) {
  Reader reader = read("\n\n[job]\n");
  std::string name;
  reader.section("job").text("name", name, "its name", required);
  EXPECT_EQ(complaint(), "x.toml:3: job.name: found nothing, expected a string (its name)");
}

TEST_F(ReaderTest, Only_the_first_ten_errors_are_listed) {
  Reader reader = read("a=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\ni=1\nj=1\nk=1\nl=1");
  reader.finish();
  const std::string message = complaint();
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 10);
  EXPECT_NE(message.find("... and 2 more"), std::string::npos);
}

TEST_F(ReaderTest, Syntax_error_has_line_and_column) {
  const auto parsed = parse_toml("a = 1\nb = = 2\n", "x.toml");
  ASSERT_FALSE(parsed.ok());
  EXPECT_TRUE(parsed.error().message.starts_with("x.toml:2:5: this is not TOML")) << parsed.error().message;
}

class OverrideTest : public ReaderTest {};

TEST_F(OverrideTest, Reaches_into_tables_and_arrays_by_index_or_name) {
  read("[[cluster.node]]\nname = \"a\"\n[[cluster.node]]\nname = \"b\"\n");
  ASSERT_TRUE(apply_override(document_, "cluster.node.0.jitter=0.5").ok());
  ASSERT_TRUE(apply_override(document_, "cluster.node.b.jitter=0.25").ok());
  ASSERT_TRUE(apply_override(document_, "job.name=tried").ok());
  Reader reader(document_, "", complaints_);
  std::string name;
  reader.section("job").text("name", name, "name");
  EXPECT_EQ(name, "tried");
  std::vector<double> jitters;
  for (Reader& node : reader.section("cluster").sections("node")) node.number("jitter", jitters.emplace_back(), {}, "jitter");
  EXPECT_EQ(jitters, (std::vector{0.5, 0.25}));
}

TEST_F(OverrideTest, Errors_name_the_option_instead_of_a_line) {
  read("[job]\nseed = 1");
  ASSERT_TRUE(apply_override(document_, "job.seed=-1").ok());
  std::uint64_t seed = 0;
  Reader(document_, "", complaints_).section("job").integer("seed", seed, at_least(0), "seed");
  EXPECT_EQ(complaint(), "--set job.seed=-1: job.seed: found -1, expected an integer of at least 0 (seed)");
}

TEST_F(OverrideTest, Refuses_a_path_that_does_not_exist) {
  read("[job]\nseed = 1\n[[cluster.node]]\nname = \"fast\"");
  for (const char* text :
       {"job.seed", "=3", "job..seed=1", "job.seed.x=1", "cluster.node.1.jitter=0", "cluster.node.fats.jitter=0", "a.b.c.d.e.f.g.h.i=1"}) {
    const Outcome set = apply_override(document_, text);
    ASSERT_FALSE(set.ok()) << text;
    EXPECT_TRUE(set.error().message.starts_with(std::string("--set ") + text + ": ")) << set.error().message;
    EXPECT_NE(set.error().message.find("expected"), std::string::npos) << set.error().message;
  }
  EXPECT_NE(apply_override(document_, "cluster.node.fats.jitter=0").error().message.find("did you mean fast?"), std::string::npos);
}

TEST_F(OverrideTest, Value_is_TOML_or_else_a_word) {
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(parse_bare_value("3", "x").held));
  EXPECT_TRUE(std::holds_alternative<Array>(parse_bare_value("[1, 2]", "x").held));
  EXPECT_EQ(std::get<std::string>(parse_bare_value("64KiB", "x").held), "64KiB");
  EXPECT_EQ(std::get<std::string>(parse_bare_value("1\nother = 2", "x").held), "1\nother = 2");
  EXPECT_EQ(std::get<std::string>(parse_bare_value("", "x").held), "");
}

}  // namespace
}  // namespace motley::config
