// Jobs written for older versions are refused with the new name of each key.
#include "config/renamed_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "config/job.h"

namespace motley::config {
namespace {

const std::string one_worker = "[[cluster.node]]\nsamples_per_second = 250\n";

TEST(RenamedKeys, Are_refused_with_their_new_name) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[strategy]\nkind = \"hps\"\nbox = true\n" + one_worker,
       "x.toml:3: strategy.box: found a key of an older version, expected time_limited; "
       "box is now called time_limited"},
      {"[strategy]\nkind = \"hps\"\ndelay = 1\n" + one_worker, "delay is now called overlap"},
      {"[strategy]\nkind = \"multistep\"\nvariate = true\n" + one_worker, "variate is now called control_variate"},
      {one_worker + "grain = 4\n",
       "cluster.node.grain: found a key of an older version, expected batch_multiple; grain is now called batch_multiple"},
      {one_worker + "new_size_s = 0.07\n", "new_size_s is now called new_batch_size_s"},
  };
  for (const auto& [text, needle] : cases) {
    const auto job = parse_job(text, "x.toml");
    ASSERT_FALSE(job.ok()) << text;
    EXPECT_NE(job.error().message.find(needle), std::string::npos) << job.error().message;
  }
}

TEST(RenamedKeys, Are_refused_in_strategy_lists) {
  for (const char* text : {"hps:box=true", "hps:delay=0", "multistep:variate=true"}) {
    const auto strategy = read_strategy(Job{}, text);
    ASSERT_FALSE(strategy.ok()) << text;
    EXPECT_NE(strategy.error().message.find("is now called"), std::string::npos) << strategy.error().message;
  }
}

TEST(RenamedKeys, Are_unknown_where_the_new_name_is_no_key) {
  const auto job = parse_job("[job]\nbox = 1\n" + one_worker, "x.toml");
  ASSERT_FALSE(job.ok());
  EXPECT_NE(job.error().message.find("job.box: found an unknown key"), std::string::npos) << job.error().message;
}

}  // namespace
}  // namespace motley::config
