// The sections of a job, one function each. Every one reads its keys into `job`, complains through its reader and finishes it.
// A section may look at what an earlier one set; the order of read_job is the order here.
#pragma once
#include "config/job.h"
#include "config/toml_reader.h"

namespace motley::config {

void read_training(Reader section, Job& job);                                // [job]
void read_model(Reader section, Job& job);                                   // [model]; sets timing_only
void read_data(Reader section, Job& job);                                    // [data]; reads timing_only
void read_optimizer(Reader section, Job& job);                               // [optimizer]
void read_wire(Reader section, Job& job);                                    // [wire]
void read_cluster(Reader section, Job& job);                                 // [cluster] and all below it
void read_batch(Reader section, Job& job);                                   // [batch]; counts the cluster's nodes
void read_pipeline(Reader section, Job& job);                                // [pipeline]; reads the batch
void read_strategy_section(Reader section, policy::StrategySpec& strategy);  // [strategy]

/// An entry of a strategy list as the table that [strategy] would be; `where` is what its errors call it.
Result<Value> strategy_table(const std::string& text, const std::string& where);

/// Part of read_cluster: the faults, in order of time, after the nodes are known.
void read_faults(Reader& cluster, cluster::Spec& spec);

}  // namespace motley::config
