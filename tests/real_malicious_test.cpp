// Invalid values in real runs: a worker that reports NaN as finite, and training that diverges.
#include <cmath>

#include "real_cluster.h"
#include "runtime/malicious_worker_for_tests.h"
#include "transport/address.h"

namespace real {
namespace {

using motley::runtime::MaliciousWorker;

class RealMalicious : public RealCluster {
 protected:
  void expect_finite_model(const std::string& run) {
    const independent::Safetensors model = independent::read_safetensors(folder_ / run / "model.safetensors");
    EXPECT_FALSE(model.tensors.empty());
    for (const auto& [name, tensor] : model.tensors)
      for (const float x : tensor.values) ASSERT_TRUE(std::isfinite(x)) << name;
  }
  /// All output that should be JSON is valid JSON.
  void expect_json(const std::string& run, const Program& program) {
    EXPECT_NO_THROW(json::parse(program.out())) << program.out();
    EXPECT_NO_THROW(json::parse(text_of(folder_ / run / "result.json")));
    EXPECT_NO_THROW(json::parse(text_of(folder_ / run / "trace.json")));
    EXPECT_NO_THROW(metrics_of(folder_ / run));
  }
};

TEST_F(RealMalicious, Worker_that_reports_NaN_as_finite_is_expelled) {
  write("token", "a secret of many letters\n");
  for (const bool borrows : {false, true}) {
    const std::string name = borrows ? "borrowed" : "sent";
    SCOPED_TRACE(name);
    const std::string address = "unix:" + (folder_ / ("socket-" + name)).string();
    Program chief = motley({"chief", "job.toml", "--listen", address, "--out", name, "--json", "--token-file", "token"}, name);
    ASSERT_TRUE(chief.says("listening on"));
    Program a = motley({"worker", "--join", address, "--node", "a", "--token-file", "token"}, name + "-a");
    Program b = motley({"worker", "--join", address, "--node", "b", "--token-file", "token"}, name + "-b");
    boost::asio::io_context io;
    motley::transport::Options options;
    options.token = "a secret of many letters";
    // From 16 features by 32 units to 4 classes: the first weights are one slice, the small tensors after them another.
    MaliciousWorker::Options worker_options{.node = "c", .node_index = 2, .counts = {16 * 32, 32 + 32 * 4 + 4}};
    worker_options.supports_borrowing = borrows;
    MaliciousWorker malicious(io, *motley::transport::parse_address(address), options, std::move(worker_options),
                              [](const motley::wire::Order& order, motley::SliceId, std::vector<float>& values) {
                                if (order.step.value == 2) values[values.size() / 2] = std::nanf("");
                              });
    EXPECT_TRUE(wait_until([&] {
      io.restart();
      io.poll();
      return !chief.alive();
    }));
    expect_good_end(chief);
    expect_good_end(a);
    expect_good_end(b);
    EXPECT_EQ(malicious.pushed, 3U);
    ASSERT_TRUE(malicious.id.has_value());
    EXPECT_NE(chief.err().find("sent worker " + std::to_string(malicious.id->value) + " on node c"), std::string::npos) << chief.err();
    const auto left = members_of(folder_ / name).left;
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0], std::pair(malicious.id->value, std::string("sent_not_finite")));
    expect_finite_model(name);
    expect_exact_ledger(name);
    expect_json(name, chief);
  }
}

/// At this learning rate all workers soon have infinite values, and none is at fault.
TEST_F(RealMalicious, Diverging_training_exits_with_3_without_a_model) {
  for (const char* strategy : {"bsp", "local-sgd"}) {
    SCOPED_TRACE(strategy);
    Program program = train(strategy, {"--strategy", strategy, "--set", "optimizer.lr=1000"});
    EXPECT_EQ(program.wait().code, 3) << program.err();
    EXPECT_NE(program.err().find("lower the learning rate"), std::string::npos) << program.err();
    expect_json(strategy, program);
    const json::object result = json::parse(program.out()).as_object();
    EXPECT_NE(std::string(result.at("ended").as_string()).find("diverged"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder_ / strategy / "model.safetensors"));
    EXPECT_FALSE(fs::exists(folder_ / strategy / "checkpoints" / "latest"));
    for (const auto& [worker, why] : members_of(folder_ / strategy).left) EXPECT_EQ(why, "connection_lost");
  }
}

TEST_F(RealMalicious, Diverging_simulation_exits_with_3_and_JSON) {
  for (const char* strategy : {"bsp", "local-sgd", "multistep", "gpipe"}) {
    SCOPED_TRACE(strategy);
    const Ran ran = run({"simulate", "job.toml", "--strategy", strategy, "--set", "optimizer.lr=1000", "--json"});
    EXPECT_EQ(ran.code, 3) << ran.err;
    ASSERT_NO_THROW(json::parse(ran.out)) << ran.out;
    EXPECT_NE(ran.out.find("lower the learning rate"), std::string::npos) << ran.out;
  }
}

TEST_F(RealMalicious, Diverging_pipeline_exits_with_3_without_a_model) {
  Program program = train("pipe", {"--strategy", "gpipe", "--set", "optimizer.lr=1000"});
  EXPECT_EQ(program.wait().code, 3) << program.err();
  EXPECT_NE(program.err().find("lower the learning rate"), std::string::npos) << program.err();
  expect_json("pipe", program);
  EXPECT_FALSE(fs::exists(folder_ / "pipe" / "model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "pipe" / "checkpoints" / "latest"));
}

}  // namespace
}  // namespace real
