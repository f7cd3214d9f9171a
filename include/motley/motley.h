// The public interface of Motley: train a model whose gradients your program computes, on several workers, with any data-parallel strategy.
//
//   motley::Session session = motley::join(argc, argv);
//   motley::Trained trained = motley::train(session, motley::read_job("job.toml"), [] { return my_objective(); });
//
// examples/cpp/linear is a complete program.
#pragma once
#include <motley/failure.h>
#include <motley/job.h>
#include <motley/objective.h>
#include <motley/session.h>
#include <motley/train.h>
#include <motley/version.h>
