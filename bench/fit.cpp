#include "fit.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace bench
{
namespace
{

constexpr double bend = 0.15;
constexpr std::size_t fewest_points = 3;

struct Point {
    double bytes, seconds;
    std::string shape, regime;
};

double line(const Fit &fit, const Point &point)
{
    return fit.intercept + fit.slope * point.bytes;
}

// Weights 1 / seconds^2. The sums are those of the normal equations for y = 1.
void solve(const std::vector<Point> &points, Fit &fit)
{
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
    for (const Point &point : points) {
        const double u = 1 / point.seconds, v = point.bytes / point.seconds;
        aa += u * u;
        ab += u * v;
        bb += v * v;
        a += u;
        b += v;
    }
    const double determinant = aa * bb - ab * ab;
    if (std::fabs(determinant) <= 1e-12 * aa * bb) {
        fit.intercept = a / aa; // all points have the same work
        return;
    }
    fit.intercept = (a * bb - b * ab) / determinant;
    fit.slope = (b * aa - a * ab) / determinant;
}

void judge(const std::vector<Point> &points, Fit &fit)
{
    double mean = 0, weights = 0, residuals = 0, total = 0;
    for (const Point &point : points) {
        mean += 1 / point.seconds;
        weights += 1 / (point.seconds * point.seconds);
    }
    mean /= weights;
    for (const Point &point : points) {
        const double deviation = point.seconds / line(fit, point) - 1;
        residuals += std::pow(1 - line(fit, point) / point.seconds, 2);
        total += std::pow(1 - mean / point.seconds, 2);
        if (std::fabs(deviation) > std::fabs(fit.worst)) {
            fit.worst = deviation;
            fit.worst_at = point.shape;
        }
        if (fit.bends_at.empty() && std::fabs(deviation) > bend) {
            fit.bends_at = point.shape;
        }
    }
    fit.r2 = total > 0 ? 1 - residuals / total : 1;
}

Fit fit_points(const std::string &sweep, const std::string &regime, std::vector<Point> points)
{
    std::sort(points.begin(), points.end(),
              [](const Point &one, const Point &other) { return one.bytes < other.bytes; });
    Fit fit;
    fit.sweep = sweep;
    fit.regime = regime;
    fit.points = points.size();
    solve(points, fit);
    judge(points, fit);
    return fit;
}

} // namespace

std::vector<Fit> fit_sweeps(const Suite &suite, const Results &results)
{
    std::map<std::string, std::vector<Point>> sweeps;
    for (const Measured &measured : results.rows) {
        const Row &row = *measured.row;
        for (const std::string &sweep : row.sweeps) {
            const std::string name =
                sweep + "/" + row.kernel + "/" + row.dtype + "/" + row.contender_name;
            sweeps[name].push_back(
                {row.bytes(), measured.median, row.shape, suite.machine.regime(row.working_set)});
        }
    }
    std::vector<Fit> fits;
    for (const auto &[name, points] : sweeps) {
        if (name.rfind("threads/", 0) == 0 || name.rfind("alignment/", 0) == 0 ||
            points.size() < fewest_points) {
            continue; // the same work each time
        }
        std::map<std::string, std::vector<Point>> regimes;
        for (const Point &point : points) {
            regimes[point.regime].push_back(point);
        }
        fits.push_back(fit_points(name, "all", points));
        for (const auto &[regime, part] : regimes) {
            if (part.size() >= fewest_points && part.size() < points.size()) {
                fits.push_back(fit_points(name, regime, part));
            }
        }
    }
    return fits;
}

void print_fits(const std::vector<Fit> &fits)
{
    for (const Fit &fit : fits) {
        std::printf("fit %s, %s: %.0f ns + %.4f ns/KiB (%.1f GB/s), R^2 %.4f, %zu points; ",
                    fit.sweep.c_str(), fit.regime.c_str(), fit.intercept * 1e9, fit.slope * 1024e9,
                    fit.slope > 0 ? 1e-9 / fit.slope : 0.0, fit.r2, fit.points);
        std::printf("worst %+.0f %% at %s; %s%s\n", 100 * fit.worst, fit.worst_at.c_str(),
                    fit.bends_at.empty() ? "straight" : "bends at ", fit.bends_at.c_str());
    }
}

void describe_fits(const std::vector<Fit> &fits)
{
    for (const Fit &fit : fits) {
        char text[256];
        std::snprintf(text, sizeof text,
                      "intercept_ns=%.3f ns_per_kib=%.6f r2=%.5f points=%zu worst=%.4f "
                      "worst_at=%.60s bends_at=%.60s",
                      fit.intercept * 1e9, fit.slope * 1024e9, fit.r2, fit.points, fit.worst,
                      fit.worst_at.c_str(), fit.bends_at.empty() ? "none" : fit.bends_at.c_str());
        benchmark::AddCustomContext("fit/" + fit.sweep + "/" + fit.regime, text);
    }
}

} // namespace bench
