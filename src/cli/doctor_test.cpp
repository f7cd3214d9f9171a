// The doctor's findings for described machines.
#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

namespace motley::cli {
namespace {

Facts healthy() {
  Facts facts{.cpu = "Test CPU",
              .cores = 8,
              .memory_bytes = 16ULL << 30U,
              .memory_available = 8ULL << 30U,
              .torch = true,
              .backend = "libtorch 1.13.1, OpenBLAS 0.3.21, 8 threads",
              .blas = "OpenBLAS",
              .data = {},
              .runs = "/somewhere/runs",
              .runs_writable = true};
  facts.data.push_back({"fashion-mnist", "/usr/share/datasets/fashion-mnist", true, ""});
  return facts;
}

Finding finding_of(const Facts& facts, std::string_view subject) {
  for (const Finding& finding : assess(facts))
    if (finding.subject == subject) return finding;
  ADD_FAILURE() << "no finding about " << subject;
  return {};
}

TEST(Doctor, Healthy_machine_is_ok_in_every_line) {
  for (const Finding& finding : assess(healthy())) EXPECT_EQ(finding.verdict, Verdict::ok) << finding.subject << ": " << finding.seen;
}

TEST(Doctor, Every_problem_has_a_remedy) {
  Facts poor{};
  poor.backend = "built without torch";
  poor.data.push_back({"mnist", "/nowhere", false, "cannot read /nowhere; fetch it"});
  const auto findings = assess(poor);
  EXPECT_GE(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict != Verdict::ok; }), 5);
  for (const Finding& finding : findings) EXPECT_EQ(finding.remedy.empty(), finding.verdict == Verdict::ok) << finding.subject;
}

TEST(Doctor, Missing_torch_or_data_prevents_training) {
  Facts facts = healthy();
  facts.torch = false;
  EXPECT_EQ(finding_of(facts, "torch").verdict, Verdict::missing);
  facts = healthy();
  facts.data[0].found = false;
  EXPECT_EQ(finding_of(facts, "data fashion-mnist").verdict, Verdict::missing);
  facts = healthy();
  facts.runs_writable = false;
  EXPECT_EQ(finding_of(facts, "runs").verdict, Verdict::missing);
}

TEST(Doctor, Slow_BLAS_is_only_a_hint) {
  Facts facts = healthy();
  facts.blas = "other";
  EXPECT_EQ(finding_of(facts, "blas").verdict, Verdict::hint);
}

TEST(Doctor, Json_is_one_object_with_the_overall_verdict) {
  Facts facts = healthy();
  facts.cpu = "a \"quoted\" name";
  const auto well = boost::json::parse(to_json(facts, assess(facts))).as_object();
  EXPECT_TRUE(well.at("ok").as_bool());
  EXPECT_EQ(well.at("cpu").as_string(), "a \"quoted\" name");
  EXPECT_EQ(well.at("findings").as_array().size(), assess(facts).size());
  facts.torch = false;
  EXPECT_FALSE(boost::json::parse(to_json(facts, assess(facts))).as_object().at("ok").as_bool());
}

TEST(Doctor, This_machine_can_be_examined) {
  const Facts facts = gather_facts();
  EXPECT_GT(facts.cores, 0U);
  EXPECT_FALSE(facts.backend.empty());
  EXPECT_FALSE(to_text(assess(facts)).empty());
}

}  // namespace
}  // namespace motley::cli
