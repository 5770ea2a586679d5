// One row of the benchmark: what is called, on what, and what it is held against.
#pragma once

#include "contender.hpp"
#include "machine.hpp"
#include "memory.hpp"

#include <attnres.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <vector>

namespace bench
{

// Something written by a task, for the comparison with the library's own result.
struct Result {
    attnres_dtype dtype;
    void *data;
    std::size_t count;
};

// A row with all its pointers in place.
struct Task {
    std::function<void()> run;
    std::vector<Result> results;
    std::function<void()> begin; // before and after calls of run, not timed; may be absent
    std::function<void()> end;
};

// As long as it lives, the task may run.
class Begun
{
  public:
    explicit Begun(const Task &task) : task_(task)
    {
        if (task_.begin) {
            task_.begin();
        }
    }
    ~Begun()
    {
        if (task_.end) {
            task_.end();
        }
    }
    Begun(const Begun &) = delete;
    Begun &operator=(const Begun &) = delete;

  private:
    const Task &task_;
};

inline void run_once(const Task &task)
{
    const Begun begun(task);
    task.run();
}

struct Row {
    // <kernel>/<dtype>/<contender>/<shape>
    std::string kernel, dtype, contender_name, shape;
    const Contender *contender = nullptr; // nullptr: a roof
    std::function<Task(const Contender *)> make;

    double bytes_read = 0, bytes_written = 0; // what the result needs, each byte once
    double operations = 0;       // fused multiply-adds, or additions where there are only those
    std::size_t working_set = 0; // bytes that are touched again and again
    std::size_t input_bytes = 0, output_bytes = 0; // to reserve, gaps included
    std::size_t query_elements = 0;
    attnres_dtype type = ATTNRES_F32;

    std::vector<std::string> roofs;      // names of the rows of which the faster is its roof
    std::vector<std::string> read_roofs; // plain reads of the same bytes: nothing is faster
    std::vector<std::string> sweeps;     // which sweeps it is a point of
    bool in_table = true;                // not only a point of a sweep
    int threads = 0; // of the host, that share the tokens; 0: it is not about threads

    std::string name() const
    {
        return kernel + "/" + dtype + "/" + contender_name + "/" + shape;
    }
    double bytes() const
    {
        return bytes_read + bytes_written;
    }
};

const char *dtype_name(attnres_dtype dtype);

// The rows of a run. Adding one also adds the roofs it needs.
class Suite
{
  public:
    Suite(const Machine &machine, const Contenders &contenders, Memory &memory,
          const std::string &filter);

    // Adds the row if the filter lets it through, with those of `roofs` that it names.
    void add(Row row, std::vector<Row> roofs);

    const std::vector<std::unique_ptr<Row>> &rows() const
    {
        return rows_;
    }
    const Row *find(const std::string &name) const;
    const std::vector<std::string> &skipped() const
    {
        return skipped_;
    }

    const Machine &machine;
    const Contenders &contenders;
    Memory &memory;

  private:
    void insert(Row row);

    std::regex filter_;
    bool negative_ = false;
    std::vector<std::unique_ptr<Row>> rows_;
    std::vector<std::string> skipped_;
};

} // namespace bench
