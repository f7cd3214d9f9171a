// Reads the sections of a job file, one function per section; each adds its errors through its reader and finishes it. A section may use
// values of earlier ones; read_sections() calls them in this order.
#pragma once
#include "config/job.h"
#include "config/toml_reader.h"

namespace motley::config {

/// Reads all sections of a document.
void read_sections(Reader& root, Job& job, const KnownKinds& known);

void read_training(Reader section, Job& job);                                // [job]
void read_model(Reader section, Job& job, const KnownKinds& known);          // [model]; sets timing_only
void read_data(Reader section, Job& job, const KnownKinds& known);           // [data]; reads timing_only
void read_optimizer(Reader section, Job& job);                               // [optimizer]
void read_wire(Reader section, Job& job);                                    // [wire]
void read_cluster(Reader section, Job& job);                                 // [cluster] and all below it
void read_batch(Reader section, Job& job);                                   // [batch]; needs the cluster's nodes
void read_pipeline(Reader section, Job& job);                                // [pipeline]; needs the batch
void read_strategy_section(Reader section, policy::StrategySpec& strategy);  // [strategy]

/// Converts an entry of a strategy list into the table that [strategy] would be; `where` names it in errors.
Result<Value> strategy_table(const std::string& text, const std::string& where);

/// Part of read_cluster: reads the faults in order of time; the nodes must have been read.
void read_faults(Reader& cluster, cluster::Spec& spec);

}  // namespace motley::config
